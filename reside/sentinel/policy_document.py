"""The policy as a setting: a JSON document that is checked wherever a model has it."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator

from reside.policy.rules import policy_of


def _checked(document: dict[str, Any]) -> dict[str, Any]:
    policy_of(document)
    return document


PolicyDocument = Annotated[dict[str, Any], AfterValidator(_checked)]
"""Levels of the policy's rules, and the rules of an organisation's pack (`reside.policy.settings`)."""
