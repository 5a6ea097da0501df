"""What a load changes of an instance's permissions, compared with its current version. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reside.model.entities import ChangedPermission, Difference
from reside.model.stacks import canonical

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reside.model.entities import Replica, Requirement

_Key = tuple[str, int, str, str, str]


def difference(existing: Replica | None, requirements: Mapping[str, Requirement]) -> Difference | None:
    """Return what differs from the current version; None for a new instance.

    A permission is the same if the same replica grants it with the same instance id and params, whatever the key of the
    requirement is called.

    Args:
        existing: the instance that the load updates.
        requirements: the requirements of the new version, as they are resolved.
    """
    if existing is None or existing.current_version is None:
        return None
    current = existing.version(existing.current_version)
    before, after = _permissions(current.requirements), _permissions(requirements)
    return Difference(
        version=current.id,
        digest=current.digest,
        added=tuple(after[key] for key in sorted(after.keys() - before.keys())),
        removed=tuple(before[key] for key in sorted(before.keys() - after.keys())),
    )


def _permissions(requirements: Mapping[str, Requirement]) -> dict[_Key, ChangedPermission]:
    found = {}
    for requirement in requirements.values():
        for replica in requirement.replicas:
            for permission in requirement.permissions:
                instance, params = permission.instance_id, permission.params
                key = (requirement.contract, replica.id, permission.permission, instance or "", canonical(params))
                found[key] = ChangedPermission(
                    contract=requirement.contract,
                    replica=replica.name,
                    permission=permission.permission,
                    instance_id=instance,
                    params=params,
                )
    return found
