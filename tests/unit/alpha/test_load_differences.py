"""What an approver sees of a load: which permissions are new, and which are no longer required."""

from __future__ import annotations

from typing import Any

from unit.alpha.entities import GREETING, digest, replica

from reside.alpha.loading.difference import difference
from reside.model.entities import GrantedPermission, Replica, ReplicaChoice, Requirement

ONE = ReplicaChoice(id=3, name="greeter", account="co_zOne")
TWO = ReplicaChoice(id=4, name="other", account="co_zTwo")


def requirement(*permissions: str, serving: ReplicaChoice = ONE, **members: Any) -> Requirement:
    granted = tuple(GrantedPermission(permission=name, **members) for name in permissions)
    return Requirement(contract=GREETING, replicas=(serving,), permissions=granted)


def running(**requirements: Requirement) -> Replica:
    """Return a replica whose current version has these requirements."""
    subject = replica("stopped", "running")
    current = subject.version(2).model_copy(update={"requirements": requirements})
    return subject.model_copy(update={"versions": (subject.version(1), current)})


def changed(existing: Replica, **requirements: Requirement) -> tuple[list[str], list[str]]:
    """Return the names of the permissions that are added and removed."""
    found = difference(existing, requirements)
    assert found is not None
    assert (found.version, found.digest) == (2, digest(2))
    return [p.permission for p in found.added], [p.permission for p in found.removed]


def test_added_and_removed_permissions_are_named() -> None:
    before = running(greeting=requirement("greet", "wave"))
    assert changed(before, greeting=requirement("wave", "shout")) == (["shout"], ["greet"])


def test_a_requirement_with_another_key_changes_nothing() -> None:
    assert changed(running(greeting=requirement("greet")), hello=requirement("greet")) == ([], [])


def test_other_params_another_instance_and_another_replica_are_changes() -> None:
    before = running(greeting=requirement("greet"))
    for after in (
        requirement("greet", params={"times": 2}),
        requirement("greet", instance_id="a"),
        requirement("greet", serving=TWO),
    ):
        assert changed(before, greeting=after) == (["greet"], ["greet"])


def test_a_new_instance_has_nothing_to_compare_with() -> None:
    assert difference(None, {"greeting": requirement("greet")}) is None
    assert difference(replica(), {}) is None
