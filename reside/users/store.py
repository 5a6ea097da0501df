"""The user manager's data in Jazz: users, sets, and the record of the entries that passes have written.

The root is the unique map `user-manager.v1` of the public group; it names the rest. Users and sets are owned by a group
whose readers have `user:read:all`, so the data can be read while the user manager does not run. Only the user manager
writes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from reside.jazz import CoId
from reside.model.errors import InvalidInput
from reside.model.permissions import PermissionRef
from reside.users.contract import USERS, PermissionSet, User

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from reside.jazz import CoMap, Group
    from reside.replica import Context

ROOT_NAME: Final = "user-manager.v1"
READERS_GROUP: Final = "usersGroup"
_SETS: Final = "sets"
"""A map: name → PermissionSet."""
_WRITTEN: Final = "written"
"""A map: account → `[[replica, contract, permission, instance id], …]`, the entries that passes have written for it."""
_ENTRY_LENGTH: Final = 4

Refs = dict[int, set[PermissionRef]]
"""Id of the granting replica → permissions."""


@dataclass(frozen=True)
class UserData:
    """The user manager's data, opened."""

    readers: Group
    users: CoMap
    sets: CoMap
    written: CoMap

    def user(self, who: str) -> User:
        """Return a user by name or account id.

        Raises:
            InvalidInput: there is no such user.
        """
        found = self.find_user(who) or next((user for user in self.all_users() if user.name == who), None)
        if found is None:
            raise InvalidInput(f"user {who!r} does not exist: see `reside user list`")
        return found

    def find_user(self, account: str) -> User | None:
        """Return the user with this account; None if it does not exist."""
        stored = self.users.get(account)
        return None if stored is None else User.model_validate(stored)

    def all_users(self) -> Iterator[User]:
        """Yield all users."""
        for stored in self.users.values():
            yield User.model_validate(stored)

    def sets_of(self, user: User) -> dict[str, PermissionSet]:
        """Return the sets that a user has, by name."""
        found = {name: self.find_set(name) for name in user.sets}
        return {name: stored for name, stored in found.items() if stored is not None}

    def find_set(self, name: str) -> PermissionSet | None:
        """Return the set with this name; None if it does not exist."""
        stored = self.sets.get(name)
        return None if stored is None else PermissionSet.model_validate(stored)

    def all_sets(self) -> Iterator[PermissionSet]:
        """Yield all sets."""
        for stored in self.sets.values():
            yield PermissionSet.model_validate(stored)

    def known_accounts(self) -> set[str]:
        """Return the accounts that may have entries: those of users, and of former users that still have some."""
        return {*self.users, *self.written}

    def written_for(self, account: str) -> Refs:
        """Return the entries that passes for an account have written and not withdrawn."""
        found: Refs = {}
        for item in self.written.get(account) or ():
            if isinstance(item, list) and len(item) == _ENTRY_LENGTH:
                number, *ref = item
                found.setdefault(number, set()).add(PermissionRef(account, *ref))
        return found

    def set_written(self, account: str, refs: Refs) -> None:
        """Write this record, if it differs."""
        listed = _listed(refs)
        if not listed and account in self.written:
            self.written.delete(account)
        elif listed and self.written.get(account) != listed:
            self.written.set(account, listed)


async def make_data(context: Context) -> CoMap:
    """Create what is missing of the data, and return its root."""
    node = context.node
    async with context.transaction(node.unique_map_id(context.public.id, ROOT_NAME)) as tx:
        root = await node.unique_map(context.public, ROOT_NAME)

        async def make() -> None:
            if READERS_GROUP not in root:
                root.set(READERS_GROUP, node.create_group("readers of users").id)
            readers = await node.load_group(root[READERS_GROUP])
            for member in (USERS, _SETS, _WRITTEN):
                if member not in root:
                    root.set(member, readers.create_map().id)

        await tx.run_exclusively(make)
    return root


async def open_data(context: Context, root: CoMap) -> UserData:
    """Open the data below its root."""
    node = context.node
    users, sets, written = [await node.load_map(CoId(root[member])) for member in (USERS, _SETS, _WRITTEN)]
    return UserData(await node.load_group(root[READERS_GROUP]), users, sets, written)


def _listed(refs: Refs) -> list[list[Any]]:
    both: Iterable[tuple[int, PermissionRef]] = ((number, ref) for number, found in refs.items() for ref in found)
    ordered = sorted(both, key=lambda item: (item[0], item[1].key))
    return [[number, ref.contract, ref.name, ref.instance_id] for number, ref in ordered]
