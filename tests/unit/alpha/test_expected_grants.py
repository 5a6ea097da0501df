"""The grants that requirements lead to, and those of the super admin."""

from __future__ import annotations

from unit.alpha.entities import GREETING, replica

from reside.alpha.claim import super_admin_grants
from reside.alpha.permissions import expected_grants, grants_ever_expected
from reside.model.entities import GrantedPermission, ReplicaChoice, Requirement
from reside.model.permissions import Grant, PermissionRef

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


def test_the_super_admin_gets_five_permissions_and_not_every_control_block() -> None:
    names = {ref.name for ref in super_admin_grants("co_zMe")}
    assert len(names) == 5
    assert "rcb:manage:all" not in names
