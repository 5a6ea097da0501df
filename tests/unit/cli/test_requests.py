"""Choices of an approver as options of the command."""

from __future__ import annotations

import pytest

from reside.cli.requests import parse_choice
from reside.model.errors import InvalidInput


@pytest.mark.parametrize(
    ("text", "choice"),
    [
        ("greeting=3", ("greeting", [3])),
        ("greeting=3,4", ("greeting", [3, 4])),
        ("greeting= 3, 4 ", ("greeting", [3, 4])),
        ("greeting=", ("greeting", [])),
    ],
)
def test_a_choice_names_a_requirement_and_replicas(text: str, choice: tuple[str, list[int]]) -> None:
    assert parse_choice(text) == choice


@pytest.mark.parametrize("text", ["greeting", "=3", "greeting=greeter", "greeting=3;4", "greeting=-1", ""])
def test_a_malformed_choice_is_refused_with_the_form(text: str) -> None:
    with pytest.raises(InvalidInput, match="is not KEY=REPLICA"):
        parse_choice(text)
