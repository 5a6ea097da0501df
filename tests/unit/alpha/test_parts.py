"""Small pure parts of Alpha: grants out of requirements, reports and previews out of documents, candidates."""

from __future__ import annotations

import pytest
from unit.alpha.entities import GREETING, digest, replica

from reside.alpha.candidate import next_version, with_version
from reside.alpha.claim import super_admin_grants
from reside.alpha.loop import is_finished
from reside.alpha.permissions import asked_grants, wanted_grants
from reside.model.entities import (
    ApproveRequest,
    GrantedPermission,
    LoadRequest,
    Management,
    ReplicaChoice,
    Requirement,
)
from reside.model.permissions import Grant, PermissionRef

ONE = ReplicaChoice(id=3, name="greeter", account="co_zOne")
TWO = ReplicaChoice(id=4, name="greeter-1", account="co_zTwo")


def requirement(*permissions: GrantedPermission, replicas: tuple[ReplicaChoice, ...] = (ONE,)) -> Requirement:
    return Requirement(contract=GREETING, replicas=replicas, permissions=permissions)


def test_each_serving_replica_shall_grant_each_approved_permission() -> None:
    room = GrantedPermission(permission="room", instance_id="hall", params={"a": 1})
    rejected = GrantedPermission(permission="shout", status="rejected")
    wanted = wanted_grants("co_zMe", {"greeting": requirement(room, rejected, replicas=(ONE, TWO))})
    expected = {PermissionRef("co_zMe", GREETING, "room", "hall"): Grant(granted=True, params={"a": 1})}
    assert wanted == {3: expected, 4: expected}


def test_a_requirement_without_permissions_still_names_its_replica_so_that_old_grants_are_withdrawn() -> None:
    assert wanted_grants("co_zMe", {"greeting": requirement()}) == {3: {}}


def test_asked_is_whatever_any_version_required_of_whom() -> None:
    subject = replica("stopped", "running")
    room, shout = GrantedPermission(permission="room"), GrantedPermission(permission="shout")
    first = subject.versions[0].model_copy(update={"requirements": {"a": requirement(room, shout)}})
    second = subject.versions[1].model_copy(update={"requirements": {"a": requirement(room, replicas=(ONE, TWO))}})
    mine, loud = (PermissionRef(subject.account, GREETING, name) for name in ("room", "shout"))
    asked = asked_grants(subject.model_copy(update={"versions": (first, second)}))
    assert asked == {3: {mine, loud}, 4: {mine}}


def test_the_super_admin_gets_five_permissions_and_not_every_control_block() -> None:
    names = {ref.name for ref in super_admin_grants("co_zMe")}
    assert len(names) == 5
    assert "rcb:manage:all" not in names


def approved() -> ApproveRequest:
    subject = replica("running")
    return ApproveRequest(info=subject.info, name="greeter", identity=subject.identity, digest=digest(9))


def test_a_candidate_of_a_new_instance_has_version_one() -> None:
    candidate = with_version(approved(), None, "image")
    assert (candidate.name, candidate.current_version, candidate.agent_secret) == ("greeter", 1, None)


def test_a_candidate_of_an_existing_one_adds_a_version_and_enables_it() -> None:
    disabled = replica("stopped", management=Management(enabled=False, placement_group="big"))
    candidate = with_version(approved(), disabled, "image")
    assert (candidate.current_version, [v.id for v in candidate.versions]) == (2, [1, 2])
    assert (candidate.management.enabled, candidate.management.placement_group) == (True, "big")
    assert candidate.version(2).digest == digest(9)


def test_versions_count_on_after_a_rollback() -> None:
    assert next_version(replica("running", "stopped", current=1)) == 3
    assert next_version(None) == 1


@pytest.mark.parametrize(
    ("status", "version", "finished"),
    [
        ("validating", None, False),
        ("requires-approval", None, False),
        ("approved", None, False),
        ("approved", 1, True),
        ("invalid", None, True),
        ("rejected", None, True),
    ],
)
def test_a_request_is_finished_when_nothing_follows(status: str, version: int | None, finished: bool) -> None:
    members = {"id": 1, "status": status, "image": "i", "owner": "o", "version": version}
    assert is_finished(LoadRequest.model_validate(members)) is finished
