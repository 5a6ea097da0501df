"""The grants that requirements lead to, and those of the super admin."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import pytest
from unit.alpha.entities import GREETING, replica

from reside.alpha.granting.claim import super_admin_orders
from reside.alpha.granting.due import (
    due_grants,
    due_requirements,
    expected_grants,
    grants_ever_expected,
    with_direct_grants,
)
from reside.alpha.granting.sync import read_record
from reside.model.entities import DirectGrant, DirectGrantStatus, GrantedPermission, ReplicaChoice, Requirement
from reside.model.permissions import Grant, PermissionRef

if TYPE_CHECKING:
    from reside.model.entities import Replica
    from reside.model.status import VersionStatus

ONE = ReplicaChoice(id=3, name="greeter", account="co_zOne")
TWO = ReplicaChoice(id=4, name="greeter-1", account="co_zTwo")


def requirement(*permissions: GrantedPermission, replicas: tuple[ReplicaChoice, ...] = (ONE,)) -> Requirement:
    return Requirement(contract=GREETING, replicas=replicas, permissions=permissions)


def test_each_approved_permission_is_expected_of_each_serving_replica() -> None:
    room = GrantedPermission(permission="room", instance_id="hall", params={"a": 1})
    rejected = GrantedPermission(permission="shout", status="rejected")
    wanted = expected_grants("co_zMe", {"greeting": requirement(room, rejected, replicas=(ONE, TWO))})
    expected = {PermissionRef("co_zMe", GREETING, "room", "hall"): Grant(granted=True, params={"a": 1})}
    assert wanted == {3: expected, 4: expected}


def test_a_requirement_without_permissions_still_names_its_replica_so_that_old_grants_are_withdrawn() -> None:
    assert expected_grants("co_zMe", {"greeting": requirement()}) == {3: {}}


def test_requested_permissions_are_those_that_any_version_required() -> None:
    subject = replica("stopped", "running")
    room, shout = GrantedPermission(permission="room"), GrantedPermission(permission="shout")
    first = subject.versions[0].model_copy(update={"requirements": {"a": requirement(room, shout)}})
    second = subject.versions[1].model_copy(update={"requirements": {"a": requirement(room, replicas=(ONE, TWO))}})
    mine, loud = (PermissionRef(subject.account, GREETING, name) for name in ("room", "shout"))
    asked = grants_ever_expected(subject.model_copy(update={"versions": (first, second)}))
    assert asked == {3: {mine, loud}, 4: {mine}}


def with_requirements(subject: Replica, *requirements: dict[str, Requirement]) -> Replica:
    """Return a replica whose versions 1, 2, … have these requirements."""
    pairs = zip(subject.versions, requirements, strict=True)
    versions = tuple(version.model_copy(update={"requirements": required}) for version, required in pairs)
    return subject.model_copy(update={"versions": versions})


@pytest.mark.parametrize(
    ("statuses", "granted"),
    [
        (("running", "starting"), {"old", "new"}),
        (("running", "error"), {"old", "new"}),
        (("running-outdated", "running"), {"old", "new"}),
        (("stopping", "running"), {"old", "new"}),
        (("error", "starting"), {"old", "new"}),
        (("stopped", "starting"), {"new"}),
        (("stopped", "running"), {"new"}),
        (("completed", "completed"), {"new"}),
        (("unknown", "unknown"), {"new"}),
    ],
)
def test_the_wishes_of_the_current_version_and_of_those_that_run_are_due(
    statuses: tuple[VersionStatus, ...], granted: set[str]
) -> None:
    names = ("old", "new")
    subject = with_requirements(
        replica(*statuses), *({"a": requirement(GrantedPermission(permission=name))} for name in names)
    )
    assert {ref.name for ref in due_grants(subject)[3]} == granted


def test_params_change_when_the_earlier_version_has_stopped() -> None:
    room = [{"a": requirement(GrantedPermission(permission="room", params={"a": number}))} for number in (1, 2)]
    for statuses, expected in ((("running", "starting"), 1), (("stopped", "running"), 2)):
        (grant,) = due_grants(with_requirements(replica(*statuses), *room))[3].values()
        assert grant.params == {"a": expected}


def test_replicas_in_use_come_before_those_of_the_next_version() -> None:
    choices = [{"a": requirement(replicas=(ONE,))}, {"a": requirement(replicas=(TWO,)), "b": requirement()}]
    both = due_requirements(with_requirements(replica("running", "starting"), *choices))
    assert both == {"a": [ONE.account, TWO.account], "b": [ONE.account]}
    after = due_requirements(with_requirements(replica("stopped", "running"), *choices))
    assert after == {"a": [TWO.account], "b": [ONE.account]}


def test_the_params_of_a_direct_grant_replace_those_of_a_version_while_it_is_approved() -> None:
    subject = replica("running")
    required = [{"a": requirement(GrantedPermission(permission="room", params={"a": 1}))}]
    room, wave = (PermissionRef(subject.account, GREETING, name) for name in ("room", "wave"))
    due = due_grants(with_requirements(subject, *required))
    grants = {
        status: [
            DirectGrant(status=status, replica=3, contract=GREETING, permission=name, params={"a": 2})
            for name in ("room", "wave")
        ]
        for status in get_args(DirectGrantStatus)
    }
    direct = Grant(granted=True, params={"a": 2})
    assert with_direct_grants(due, subject.account, grants.pop("approved")) == {3: {room: direct, wave: direct}}
    for others in grants.values():
        assert with_direct_grants(due, subject.account, others) == due


def test_the_super_admin_gets_six_permissions_and_not_every_control_block() -> None:
    names = {order.permission for order in super_admin_orders("co_zMe")}
    assert len(names) == 6
    assert "rcb:manage:all" not in names


def test_a_record_names_entries_by_members_and_in_an_earlier_release_by_lists() -> None:
    ref, other = PermissionRef("co_zA", GREETING, "greet"), PermissionRef("co_zA", GREETING, "greet:room", "blue")
    members = {
        "isRecord": True,
        f"3:{ref.key}": [3, ref.contract, ref.name, None],
        "4": [[other.contract, other.name, "blue"], ["malformed"]],
        "5": [],
        "malformed": [1, 2],
    }
    assert read_record("co_zA", members) == {3: {ref}, 4: {other}}
