"""Which files are the state of a stack, and which are damaged."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest
from unit.engine.stack_states import SALT, state

from reside.sentinel.engine.saved_state import is_state, salt_in_settings, salt_in_state, settings_with

if TYPE_CHECKING:
    from collections.abc import Callable


def test_a_state_with_and_without_resources_is_one() -> None:
    assert is_state(state("a", "b"))
    assert is_state(state())
    assert is_state(b'{"version": 3, "checkpoint": {"stack": "organization/reside/demo", "latest": null}}')


def test_no_part_of_a_state_is_one() -> None:
    whole = state("a", "b")
    assert not any(is_state(whole[:length]) for length in range(len(whole)))
    assert not any(is_state(whole[:length].ljust(len(whole), b"\0")) for length in range(len(whole)))


@pytest.mark.parametrize(
    "change",
    [
        lambda document: document.pop("version"),
        lambda document: document.pop("checkpoint"),
        lambda document: document["checkpoint"].pop("stack"),
        lambda document: document["checkpoint"].update(latest=[]),
        lambda document: document["checkpoint"]["latest"].update(resources={}),
        lambda document: document["checkpoint"]["latest"].update(resources=["a"]),
        lambda document: document["checkpoint"]["latest"]["resources"][0].pop("urn"),
    ],
)
def test_other_json_is_no_state(change: Callable[[dict[str, Any]], object]) -> None:
    document = json.loads(state("a"))
    change(document)
    assert not is_state(json.dumps(document).encode())


@pytest.mark.parametrize("content", [None, b"", b"null", b"[]", b"7", b'"text"', b"[" * 100_000, b"\xff\xfe"])
def test_anything_else_is_no_state(content: bytes | None) -> None:
    assert not is_state(content)
    assert salt_in_state(content) is None
    assert salt_in_settings(content) is None


def test_random_bytes_are_no_state() -> None:
    source = random.Random(7)  # noqa: S311 - the same bytes in each run
    assert not any(is_state(source.randbytes(source.randrange(2000))) for _ in range(200))


def test_the_salt_is_in_the_settings_and_in_the_state() -> None:
    assert salt_in_settings(settings_with(SALT).encode()) == SALT
    assert salt_in_settings(b"config:\n  a:b: c\n" + settings_with(SALT).encode()) == SALT
    assert salt_in_state(state("a")) == SALT
    whole = settings_with(SALT).encode()
    assert not any(salt_in_settings(whole[:length]) for length in range(len(whole)))
    for provider in ({}, {"state": {}}, {"state": {"salt": "no salt"}}, {"state": {"salt": 7}}):
        assert salt_in_state(state("a", provider=provider)) is None
