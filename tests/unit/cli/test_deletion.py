"""What `reside replica delete` shows before it asks."""

from __future__ import annotations

from typing import Any

from reside.cli.grantees import Names
from reside.cli.replica_deletion import deletion_lines

NAMES = Names([{"id": 3, "name": "greeter"}], {})


def seen(**members: Any) -> dict[str, Any]:
    """Return a preview of the deletion of the caller."""
    return {"name": "caller", "objects": ["Secret/caller"], "holds": [], "dependants": [], **members}


def test_objects_permissions_and_dependants_are_shown() -> None:
    holds = [[3, "greeting", "greet", ""], [3, "greeting", "greet:room", "a"], [9, "old", "read", ""]]
    dependants = [[5, "one", ["calls", "more"]], [6, "two", ["calls"]]]
    assert list(deletion_lines(seen(holds=holds, dependants=dependants), NAMES)) == [
        "caller and its Kubernetes objects are deleted: Secret/caller",
        "  withdrawn: greet (greeting) of greeter",
        "  withdrawn: greet:room for a (greeting) of greeter",
        "  withdrawn: read (old) of 9",
        "  required by one (calls, more), two (calls)",
    ]


def test_a_replica_that_has_nothing_and_serves_nobody_shows_its_objects_only() -> None:
    assert len(list(deletion_lines(seen(), NAMES))) == 1
