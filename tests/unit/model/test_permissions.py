"""Permissions: a key alone grants nothing, and a sync changes only what was requested."""

from __future__ import annotations

from reside.model.permissions import ControlBlockPermission, Grant, PermissionRef, plan_expected

ME = PermissionRef("co_zMe", "reg/contracts/a.v1", "use")
ROOM = PermissionRef("co_zMe", "reg/contracts/a.v1", "use", "room")
OTHER = PermissionRef("co_zOther", "reg/contracts/a.v1", "use")
YES = Grant(granted=True)
NO = Grant(granted=False)


def test_keys_are_those_of_the_model() -> None:
    assert ME.key == "co_zMe:reg/contracts/a.v1:use"
    assert ROOM.key == "co_zMe:reg/contracts/a.v1:use:room"


def test_in_force_only_while_expected_and_current_grant_it_with_equal_params() -> None:
    params = Grant(granted=True, params={"a": 1})
    assert ControlBlockPermission(ME, YES, YES).in_force
    assert ControlBlockPermission(ME, params, params).in_force
    assert not ControlBlockPermission(ME, YES).in_force
    assert not ControlBlockPermission(ME, YES, NO).in_force
    assert not ControlBlockPermission(ME, NO, YES).in_force
    assert not ControlBlockPermission(ME, NO, NO).in_force
    assert not ControlBlockPermission(ME, params, YES).in_force


def test_settled_when_current_is_what_is_expected_or_was_never_granted() -> None:
    assert ControlBlockPermission(ME, YES, YES).settled
    assert ControlBlockPermission(ME, NO).settled
    assert ControlBlockPermission(ME, NO, NO).settled
    assert not ControlBlockPermission(ME, YES).settled
    assert not ControlBlockPermission(ME, NO, YES).settled
    assert not ControlBlockPermission(ME, Grant(granted=True, params={"a": 1}), YES).settled


def test_sync_adds_updates_leaves_and_withdraws() -> None:
    present = [ControlBlockPermission(ME, YES, YES), ControlBlockPermission(OTHER, YES, YES)]
    changed = Grant(granted=True, params={"a": 1})
    assert plan_expected({ME: YES}, {ME}, present) == {}
    assert plan_expected({ME: YES, ROOM: YES}, {ME, ROOM}, present) == {ROOM: YES}
    assert plan_expected({ME: changed}, {ME}, present) == {ME: changed}
    assert plan_expected({}, {ME, ROOM}, present) == {ME: NO}
    assert plan_expected({ROOM: YES}, {ME, ROOM}, present) == {ME: NO, ROOM: YES}


def test_sync_keeps_grants_of_administrators_that_were_never_required() -> None:
    assert plan_expected({}, {ROOM}, [ControlBlockPermission(ME, YES, YES)]) == {}


def test_sync_does_not_withdraw_twice() -> None:
    assert plan_expected({}, {ME}, [ControlBlockPermission(ME, NO, YES)]) == {}


def test_malformed_grants_grant_nothing() -> None:
    assert Grant.parse(None) is None
    assert Grant.parse({"granted": "yes"}) is None
    assert Grant.parse({"granted": True, "params": 3}) == YES
