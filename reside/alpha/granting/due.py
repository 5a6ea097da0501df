"""What is due to an account: grants and requirements that follow from a replica's versions, and direct grants. Pure.

Invariant: a version that runs keeps its grants and requirements. While several versions of a replica have a workload,
the requirements of all of them apply. If two versions require the same permission with different params, the params of
the earlier version apply. What only an earlier version requires is due until that version has stopped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reside.alpha.stacks.rollout import GONE
from reside.model.permissions import Grant, PermissionRef

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from reside.model.entities import DirectGrant, Replica, ReplicaVersion, Requirement

GrantsByReplica = dict[int, dict[PermissionRef, Grant]]
"""Id of the granting replica → expected grants."""


def holding(replica: Replica) -> tuple[ReplicaVersion, ...]:
    """Return the versions whose requirements apply now, the earliest first.

    These are the current one, the canary, and those that run; none apply to a replica that is being deleted.
    """
    if replica.deletion is not None:
        return ()
    versions = sorted(replica.versions, key=lambda version: version.id)
    return tuple(v for v in versions if replica.is_wanted(v) or v.status not in GONE)


def due_grants(replica: Replica) -> GrantsByReplica:
    """Return the grants that are due to a replica's account, by the id of the granting replica."""
    due: GrantsByReplica = {}
    for version in holding(replica):
        for number, grants in expected_grants(replica.account, version.requirements).items():
            for ref, grant in grants.items():
                due.setdefault(number, {}).setdefault(ref, grant)
    return due


def with_direct_grants(due: GrantsByReplica, account: str, direct: Iterable[DirectGrant]) -> GrantsByReplica:
    """Return what is due with the approved direct grants of the account; their params replace those of versions."""
    both = {number: dict(grants) for number, grants in due.items()}
    for grant in direct:
        if grant.status == "approved":
            ref = PermissionRef(account, grant.contract, grant.permission, grant.instance_id)
            both.setdefault(grant.replica, {})[ref] = Grant(granted=True, params=grant.params)
    return both


def due_requirements(replica: Replica) -> dict[str, list[str]]:
    """Return for each requirement, by key, the accounts of the replicas that serve it, those in use first."""
    due: dict[str, list[str]] = {}
    for version in holding(replica):
        for key, requirement in version.requirements.items():
            accounts = due.setdefault(key, [])
            accounts += [choice.account for choice in requirement.replicas if choice.account not in accounts]
    return due


def expected_grants(account: str, requirements: Mapping[str, Requirement]) -> GrantsByReplica:
    """Return the grants that these requirements of `account` need; permissions that are not approved need none."""
    expected: GrantsByReplica = {}
    for requirement in requirements.values():
        for replica in requirement.replicas:
            grants = expected.setdefault(replica.id, {})
            for permission in requirement.permissions:
                ref = PermissionRef(account, requirement.contract, permission.permission, permission.instance_id)
                if permission.status == "approved":
                    grants[ref] = Grant(granted=True, params=permission.params)
    return expected


def grants_ever_expected(replica: Replica) -> dict[int, set[PermissionRef]]:
    """Return the permissions that any version of a replica has required, by the id of the granting replica."""
    earlier: dict[int, set[PermissionRef]] = {}
    for version in replica.versions:
        for number, grants in expected_grants(replica.account, version.requirements).items():
            earlier.setdefault(number, set()).update(grants)
    return earlier
