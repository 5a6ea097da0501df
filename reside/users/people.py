"""What is due to users, and how users and sets change. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reside.model.errors import Conflict
from reside.model.permissions import Grant, PermissionRef
from reside.users.contract import MAX_PERMISSIONS, OwnGrant, Permission, User

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from reside.model.entities import Decision
    from reside.users.contract import PermissionSet

GrantsByReplica = dict[int, dict[PermissionRef, Grant]]
"""Id of the granting replica → expected grants."""


def ref_of(account: str, permission: Permission) -> PermissionRef:
    """Return the permission as that of an account."""
    return PermissionRef(account, permission.contract, permission.permission, permission.instance_id)


def due(user: User | None, sets: Mapping[str, PermissionSet]) -> GrantsByReplica:
    """Return the grants that are due to a user; none if the user was removed.

    If several sources contain a permission with different params, those of the user's own permission apply, or those of
    the set whose name comes first.
    """
    found: GrantsByReplica = {}
    if user is not None:
        for _, permission in _sources(user, sets):
            grant = Grant(granted=True, params=permission.params)
            found.setdefault(permission.replica, {}).setdefault(ref_of(user.account, permission), grant)
    return found


def holdings(user: User, sets: Mapping[str, PermissionSet]) -> Iterator[tuple[Permission, tuple[str, ...]]]:
    """Yield each permission that is due to a user, with its sources."""
    found: dict[str, tuple[Permission, list[str]]] = {}
    for source, permission in _sources(user, sets):
        found.setdefault(permission.key, (permission, []))[1].append(source)
    for permission, sources in found.values():
        yield permission, tuple(sources)


def assigned(user: User, name: str, decided: Decision) -> User:
    """Return the user with a set; an earlier decision stays."""
    return user.model_copy(update={"sets": {name: decided} | user.sets})


def unassigned(user: User, name: str) -> User:
    """Return the user without a set.

    Raises:
        Conflict: the user does not have it.
    """
    if name not in user.sets:
        known = ", ".join(sorted(user.sets)) or "none"
        raise Conflict(f"user {user.name} does not have the set {name}; it has {known}")
    return user.model_copy(update={"sets": {key: found for key, found in user.sets.items() if key != name}})


def granted(user: User, permission: Permission, decided: Decision) -> User:
    """Return the user with a permission apart from sets; if the user has it, it gets the new params.

    Raises:
        Conflict: the user has too many.
    """
    own = {grant.key: grant for grant in user.permissions}
    if permission.key in own and own[permission.key].params == permission.params:
        return user
    own[permission.key] = OwnGrant(**permission.model_dump(), decided=decided)
    if len(own) > MAX_PERMISSIONS:
        raise Conflict(f"user {user.name} has {MAX_PERMISSIONS} permissions apart from sets: define a set of them")
    return user.model_copy(update={"permissions": tuple(own.values())})


def revoked(user: User, permission: Permission) -> User:
    """Return the user without a permission that it had apart from sets.

    Raises:
        Conflict: the user does not have it.
    """
    left = tuple(grant for grant in user.permissions if grant.key != permission.key)
    if len(left) == len(user.permissions):
        raise Conflict(
            f"user {user.name} has no {permission.permission} apart from sets: see `reside user permissions`"
        )
    return user.model_copy(update={"permissions": left})


def without_duplicates(permissions: Iterable[Permission]) -> tuple[Permission, ...]:
    """Return the permissions of a set.

    Raises:
        Conflict: one is there twice.
    """
    found: dict[str, Permission] = {}
    for permission in permissions:
        if found.setdefault(permission.key, permission) is not permission:
            raise Conflict(f"permission {permission.permission} of replica {permission.replica} is in the set twice")
    return tuple(found.values())


def _sources(user: User, sets: Mapping[str, PermissionSet]) -> Iterator[tuple[str, Permission]]:
    """Yield what a user should have, with where it comes from, that whose params apply first."""
    for grant in user.permissions:
        yield "granted", grant
    for name in sorted(user.sets):
        if name in sets:
            for permission in sets[name].permissions:
                yield f"set {name}", permission
