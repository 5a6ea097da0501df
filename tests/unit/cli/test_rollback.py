"""Which image a rollback loads, and when a load that is rolled back is finished."""

from __future__ import annotations

from typing import Any

import pytest

from reside.cli.loading import is_finished
from reside.cli.replica import earlier_image
from reside.model.entities import HealthPolicy
from reside.model.errors import InvalidInput


def row(
    *digests: str, current: int | None = None, broken: tuple[int, ...] = (), aborted: tuple[int, ...] = ()
) -> dict[str, Any]:
    versions = [
        {
            "id": number,
            "status": "stopped",
            "digest": digest,
            "wasHealthy": number not in broken,
            "rolledBackTo": 1 if number in aborted else None,
        }
        for number, digest in enumerate(digests, 1)
    ]
    identity = "registry.example.org/greeter"
    return {"name": "greeter", "identity": identity, "version": current or len(digests), "versions": versions}


def test_the_last_healthy_version_before_the_current_one_unless_another_is_named() -> None:
    assert earlier_image(row("a", "b", "c", broken=(2,)), None) == "registry.example.org/greeter@a"
    assert earlier_image(row("a", "b", "c", broken=(2,)), 2) == "registry.example.org/greeter@b"
    assert earlier_image(row("a", "b", "c"), None) == "registry.example.org/greeter@b"
    assert earlier_image(row("a", "b", "c"), 1) == "registry.example.org/greeter@a"
    assert earlier_image(row("a", "b", "c", current=2), None) == "registry.example.org/greeter@a"


def test_an_aborted_canary_is_chosen_only_by_its_number() -> None:
    assert earlier_image(row("a", "b", "c", aborted=(2,)), None) == "registry.example.org/greeter@a"
    assert earlier_image(row("a", "b", "c", aborted=(2,)), 2) == "registry.example.org/greeter@b"


@pytest.mark.parametrize("wanted", [3, 4, 0, -1])
def test_only_earlier_versions_can_be_chosen(wanted: int) -> None:
    with pytest.raises(InvalidInput, match=f"version {wanted} of greeter is not an earlier one: choose from 1, 2"):
        earlier_image(row("a", "b", "c"), wanted)


def test_a_first_version_has_no_earlier_one() -> None:
    with pytest.raises(InvalidInput, match="greeter has no earlier version than 1"):
        earlier_image(row("a"), None)


def test_without_a_healthy_earlier_version_one_must_be_named() -> None:
    with pytest.raises(InvalidInput, match="no earlier version of greeter was healthy: choose one with --version"):
        earlier_image(row("a", "b", broken=(1,)), None)


@pytest.mark.parametrize(
    ("status", "on_failure", "broken", "finished"),
    [
        ("error", "stay", (), True),
        ("error", "roll-back", (1, 2), True),
        ("error", "roll-back", (2,), False),
        ("running", "roll-back", (), True),
        ("starting", "stay", (), False),
    ],
)
def test_a_load_is_finished_when_nothing_follows(
    status: str, on_failure: str, broken: tuple[int, ...], finished: bool
) -> None:
    seen = row("a", "b", broken=broken) | {"status": status, "class": "long-running"}
    assert is_finished(seen, HealthPolicy.model_validate({"on_failure": on_failure})) == finished
