"""The revision of an approval: it changes with everything that is granted, and with nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from unit.alpha.entities import GREETING, digest, replica

from reside.alpha.loading.revision import approval_revision
from reside.model.entities import (
    ApproveRequest,
    GrantedPermission,
    HealthPolicy,
    LoadRequest,
    ReplicaChoice,
    Requirement,
)
from reside.model.previews import ObjectChange, StackPreview, ValueChange
from reside.model.stacks import DesiredStack

REQUEST = LoadRequest(id=7, status="validating", image="image:v1", owner="co_zOwner")
ONE = ReplicaChoice(id=3, name="greeter", account="co_zOne")
TWO = ReplicaChoice(id=4, name="greeter-1", account="co_zTwo")
STACK = DesiredStack("caller", "co_zAlpha", ())
PREVIEW = StackPreview("caller", STACK.revision, (ObjectChange("Secret/caller", "update", ("data.a",), "uid 1"),))
OTHER_STACK = DesiredStack("caller", "co_zAlpha", ({"kind": "Secret", "metadata": {"name": "caller"}},))


def permission(**members: Any) -> GrantedPermission:
    return GrantedPermission(**{"permission": "greet", "params": {"times": 1}} | members)


def requirement(**members: Any) -> Requirement:
    return Requirement(**{"contract": GREETING, "replicas": (ONE,), "permissions": (permission(),)} | members)


def approved(**members: Any) -> ApproveRequest:
    subject = replica("running")
    default = {"info": subject.info, "name": "caller", "identity": subject.identity, "digest": digest(1)}
    return ApproveRequest(**default | {"requirements": {"greeting": requirement()}} | members)


def requiring(**members: Any) -> ApproveRequest:
    return approved(requirements={"greeting": requirement(**members)})


BEFORE = approval_revision(REQUEST, approved(), None, STACK, PREVIEW)


@pytest.mark.parametrize(
    "changed",
    [
        approved(digest=digest(2)),
        approved(name="other"),
        approved(implementations={"greeting": GREETING}),
        approved(requirements={}),
        requiring(replicas=(TWO,)),
        requiring(replicas=(ONE, TWO)),
        requiring(permissions=()),
        requiring(permissions=(permission(permission="wave"),)),
        requiring(permissions=(permission(instance_id="a"),)),
        requiring(permissions=(permission(params={"times": 2}),)),
    ],
    ids=repr,
)
def test_it_changes_with_what_is_granted(changed: ApproveRequest) -> None:
    assert approval_revision(REQUEST, changed, None, STACK, PREVIEW) != BEFORE


def test_it_changes_with_the_stack_the_replica_the_owner_the_health_policy_and_the_share_of_a_canary() -> None:
    assert approval_revision(REQUEST, approved(), None, OTHER_STACK, PREVIEW) != BEFORE
    assert approval_revision(REQUEST, approved(), replica("running"), STACK, PREVIEW) != BEFORE
    assert (
        approval_revision(REQUEST.model_copy(update={"owner": "co_zOther"}), approved(), None, STACK, PREVIEW) != BEFORE
    )
    policy = HealthPolicy(on_failure="roll-back")
    assert approval_revision(REQUEST.model_copy(update={"health": policy}), approved(), None, STACK, PREVIEW) != BEFORE
    canary = REQUEST.model_copy(update={"canary_percent": 25})
    assert approval_revision(canary, approved(), None, STACK, PREVIEW) != BEFORE


def test_it_does_not_change_with_what_grants_nothing() -> None:
    for same in (requiring(alternatives=(TWO,)), requiring(permissions=(permission(status="pending"),))):
        assert approval_revision(REQUEST, same, None, STACK, PREVIEW) == BEFORE


def test_it_changes_with_what_is_done_to_which_live_version_and_not_with_values_or_with_what_stays() -> None:
    def of(*changes: ObjectChange) -> str:
        return approval_revision(REQUEST, approved(), None, STACK, StackPreview("caller", STACK.revision, changes))

    before = ObjectChange("Secret/caller", "update", ("data.a",), "uid 1")
    assert of(before) == BEFORE
    assert of(before, ObjectChange("Service/caller", "same", (), "uid 7")) == BEFORE
    assert of(replace(before, values=(ValueChange("data.a", "***", "***"),))) == BEFORE
    for other in (replace(before, live="uid 2"), replace(before, live=None), replace(before, action="replace")):
        assert of(other) != BEFORE
