"""The decisions of the permission loop."""

from __future__ import annotations

from reside.model.permissions import ControlBlockPermission, Grant, PermissionRef
from reside.replica.grants import next_steps

YES, NO = Grant(granted=True), Grant(granted=False)
OTHER = Grant(granted=True, params={"room": "red"})


def permission(name: str, expected: Grant, current: Grant | None) -> ControlBlockPermission:
    return ControlBlockPermission(PermissionRef("co_zA", "r.example/c.v1", name), expected, current)


def acts(*permissions: ControlBlockPermission) -> list[tuple[str, str]]:
    return [(step.ref.name, step.act) for step in next_steps(permissions, lambda _: True)]


def test_what_is_as_expected_needs_no_step() -> None:
    assert acts(permission("a", YES, YES), permission("b", NO, NO), permission("c", NO, None)) == []


def test_each_difference_is_one_step_and_revocations_come_first() -> None:
    steps = acts(
        permission("new", YES, None),
        permission("again", YES, NO),
        permission("changed", OTHER, YES),
        permission("gone", NO, YES),
    )
    assert steps == [("gone", "revoked"), ("new", "granted"), ("again", "granted"), ("changed", "updated")]


def test_a_step_carries_the_expected_grant() -> None:
    assert [step.grant for step in next_steps([permission("changed", OTHER, YES)], lambda _: True)] == [OTHER]


def test_what_is_not_implemented_is_not_granted_and_what_was_granted_ends() -> None:
    permissions = [permission("never", YES, None), permission("ended", YES, YES), permission("over", YES, NO)]
    (step,) = next_steps(permissions, lambda _: False)
    assert (step.ref.name, step.act, step.grant) == ("ended", "revoked", NO)
