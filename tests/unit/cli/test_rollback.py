"""Which image a rollback loads."""

from __future__ import annotations

from typing import Any

import pytest

from reside.cli.replica import earlier_image
from reside.model.errors import InvalidInput


def row(*digests: str, current: int | None = None) -> dict[str, Any]:
    versions = [{"id": number, "status": "stopped", "digest": digest} for number, digest in enumerate(digests, 1)]
    identity = "registry.example.org/greeter"
    return {"name": "greeter", "identity": identity, "version": current or len(digests), "versions": versions}


def test_the_version_before_the_current_one_unless_another_is_named() -> None:
    assert earlier_image(row("a", "b", "c"), None) == "registry.example.org/greeter@b"
    assert earlier_image(row("a", "b", "c"), 1) == "registry.example.org/greeter@a"
    assert earlier_image(row("a", "b", "c", current=2), None) == "registry.example.org/greeter@a"


@pytest.mark.parametrize("wanted", [3, 4, 0, -1])
def test_only_earlier_versions_can_be_chosen(wanted: int) -> None:
    with pytest.raises(InvalidInput, match=f"version {wanted} of greeter is not an earlier one: choose from 1, 2"):
        earlier_image(row("a", "b", "c"), wanted)


def test_a_first_version_has_no_earlier_one() -> None:
    with pytest.raises(InvalidInput, match="greeter has no earlier version than 1"):
        earlier_image(row("a"), None)
