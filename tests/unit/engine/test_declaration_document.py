"""Declarations: parsing, refusal, and the resulting requests, with the same cases as the engine's Go test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from pulumi.runtime.proto import resource_pb2

from reside.sentinel.engine.declaration import InvalidDeclaration, decode
from reside.sentinel.engine.registration import request

CASES: dict[str, Any] = json.loads(
    (Path(__file__).parents[3] / "engine/internal/operation/testdata/declarations.json").read_text()
)
"""Return the cases, which the engine's Go test also reads."""
VALID = json.dumps(CASES["valid"]["document"])


def test_a_declaration_becomes_these_requests() -> None:
    responses = {
        index: resource_pb2.RegisterResourceResponse(**response)
        for index, response in enumerate(CASES["valid"]["responses"])
    }
    found = [MessageToDict(request(resource, responses)) for resource in decode(VALID).resources]
    assert found == CASES["valid"]["requests"]


def test_a_declaration_is_encoded_as_it_was_read() -> None:
    assert json.loads(decode(VALID).encode()) == CASES["valid"]["document"]


@pytest.mark.parametrize("document", [pytest.param(each["document"], id=each["name"]) for each in CASES["invalid"]])
def test_an_invalid_declaration_is_refused_without_its_values(document: str) -> None:
    with pytest.raises(InvalidDeclaration, match=r"^the declaration of the stack is invalid: ") as caught:
        decode(document)
    assert "hunter2" not in str(caught.value)


def test_a_repr_shows_no_input() -> None:
    assert "aHVudGVyMg" not in repr(decode(VALID))
