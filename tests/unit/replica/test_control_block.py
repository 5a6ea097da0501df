"""Reading a permission from its map: inconsistent members grant nothing."""

from __future__ import annotations

from typing import Any

import pytest

from reside.model.permissions import ControlBlockPermission, Grant, PermissionRef
from reside.replica.control_block import parse_permission

REF = PermissionRef("co_zA", "r.example/c.v1", "greet", "blue")
MEMBERS: dict[str, Any] = {
    "account": "co_zA",
    "identity": "r.example/c.v1",
    "name": "greet",
    "instanceId": "blue",
    "expected": {"granted": True, "params": {"a": 1}},
    "current": {"granted": True, "params": {}},
}


def test_a_complete_permission() -> None:
    expected = ControlBlockPermission(REF, Grant(granted=True, params={"a": 1}), Grant(granted=True))
    assert parse_permission(REF.key, MEMBERS) == expected


@pytest.mark.parametrize("member", ["account", "identity", "name", "instanceId"])
@pytest.mark.parametrize("value", [None, 7, "other"])
def test_members_that_contradict_the_key_are_no_permission(member: str, value: Any) -> None:
    """Otherwise an account that may write one entry could forge an entry of another account."""
    assert parse_permission(REF.key, {**MEMBERS, member: value}) is None


@pytest.mark.parametrize("current", [None, "yes", {}, {"granted": "true"}, {"granted": 1}, ["granted"]])
def test_a_malformed_current_grants_nothing(current: Any) -> None:
    found = parse_permission(REF.key, {**MEMBERS, "current": current})
    assert found is not None
    assert found.current is None


def test_without_an_expected_grant_nothing_is_granted() -> None:
    found = parse_permission(REF.key, {key: value for key, value in MEMBERS.items() if key != "expected"})
    assert found is not None
    assert found.expected == Grant(granted=False)
