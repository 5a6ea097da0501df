"""The methods of the contract `user-manager.v1`.

A method that changes something checks its caller, writes the data, and makes the passes of the users concerned before
it responds: a revocation counts when the call returns. If the process dies or fails in between, the passes are made
later, since the users are queued before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from reside.model.errors import Conflict, InvalidInput
from reside.users import people
from reside.users.contract import (
    MANAGE_USERS,
    READ_USERS,
    AddUser,
    DefineSet,
    Holding,
    Holdings,
    NamedSet,
    NamedUser,
    PermissionOfUser,
    PermissionSet,
    RenameUser,
    SetOfUser,
    Sets,
    User,
    Users,
    WhoHas,
)
from reside.users.manager import UserManager, open_manager
from reside.users.store import open_data

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable

    from reside.replica import Call
    from reside.replica.open_blocks import OpenBlocks
    from reside.users.contract import Permission
    from reside.users.store import UserData

_Result = TypeVar("_Result")


class Methods:
    """The handlers of the methods.

    Args:
        queue: queues a pass for an account.
    """

    def __init__(self, queue: Callable[[str], None]) -> None:
        self._queue = queue

    async def add_user(self, call: Call, body: AddUser) -> User:
        """Give an account a name."""
        manager = await _managed(call)
        await manager.cluster.check_person(body.account)

        async def write() -> User:
            _check_free(manager.data, body.name, body.account)
            found = manager.data.find_user(body.account)
            if found is not None and found.name != body.name:
                raise Conflict(f"{body.account} is user {found.name} already: rename it")
            made = User(account=body.account, name=body.name, added=manager.decision(call.account, body.reason))
            return self._stored(manager, found or made)

        return await _exclusively(manager, write)

    async def rename_user(self, call: Call, body: RenameUser) -> User:
        """Give a user another name."""
        manager = await _managed(call)

        async def write() -> User:
            found = manager.data.user(body.user)
            _check_free(manager.data, body.name, found.account)
            return self._stored(manager, found.model_copy(update={"name": body.name}))

        return await _exclusively(manager, write)

    async def remove_user(self, call: Call, body: NamedUser) -> User:
        """Remove a user, and withdraw what it was given here."""
        manager = await _managed(call)

        async def write() -> User:
            found = manager.data.user(body.user)
            manager.data.users.delete(found.account)
            await self._sync(manager, [found.account])
            return found

        return await _exclusively(manager, write)

    async def assign_set(self, call: Call, body: SetOfUser) -> User:
        """Give a set to a user."""
        manager = await _managed(call)

        def assigned(found: User) -> User:
            _set(manager.data, body.set)
            return people.assigned(found, body.set, manager.decision(call.account, body.reason))

        return await self._change(manager, body.user, assigned)

    async def unassign_set(self, call: Call, body: SetOfUser) -> User:
        """Take a set from a user."""
        manager = await _managed(call)
        return await self._change(manager, body.user, lambda found: people.unassigned(found, body.set))

    async def grant_permission(self, call: Call, body: PermissionOfUser) -> User:
        """Give a permission to a user apart from sets."""
        manager = await _managed(call)
        checked = await manager.cluster.check(body.permission)
        decided = manager.decision(call.account, body.reason)
        return await self._change(manager, body.user, lambda found: people.granted(found, checked, decided))

    async def revoke_permission(self, call: Call, body: PermissionOfUser) -> User:
        """Take a permission from a user that it has apart from sets."""
        manager = await _managed(call)
        return await self._change(manager, body.user, lambda found: people.revoked(found, body.permission))

    async def define_set(self, call: Call, body: DefineSet) -> PermissionSet:
        """Define what a set contains; all users that have it get and lose what has changed."""
        manager = await _managed(call)
        checked = people.without_duplicates([await manager.cluster.check(item) for item in body.permissions])
        decided = manager.decision(call.account, body.reason)
        defined = PermissionSet(name=body.name, permissions=checked, decided=decided)

        async def write() -> PermissionSet:
            found = manager.data.find_set(body.name)
            if found is not None and found.permissions == checked:
                return found
            manager.data.sets.set(body.name, defined.document())
            await self._sync(manager, [user.account for user in _having(manager.data, body.name)])
            return defined

        return await _exclusively(manager, write)

    async def delete_set(self, call: Call, body: NamedSet) -> PermissionSet:
        """Delete a set that nobody has."""
        manager = await _managed(call)

        async def write() -> PermissionSet:
            found = _set(manager.data, body.name)
            users = ", ".join(user.name for user in _having(manager.data, body.name))
            if users:
                raise Conflict(f"the set {body.name} is assigned to {users}: unassign it first")
            manager.data.sets.delete(body.name)
            return found

        return await _exclusively(manager, write)

    async def list_users(self, call: Call) -> Users:
        """Return all users."""
        data = await _readable(call)
        return Users(users=tuple(sorted(data.all_users(), key=lambda user: user.name)))

    async def list_sets(self, call: Call) -> Sets:
        """Return all sets."""
        data = await _readable(call)
        return Sets(sets=tuple(sorted(data.all_sets(), key=lambda found: found.name)))

    async def who_has(self, call: Call, body: WhoHas) -> Holdings:
        """Return which users have which permissions, and whether they are in force."""
        data = await _readable(call)
        users = list(data.all_users()) if body.user is None else [data.user(body.user)]
        found: list[Holding] = []
        async with (await open_manager(call.context)).blocks() as blocks:
            for user in sorted(users, key=lambda user: user.name):
                for permission, sources in people.holdings(user, data.sets_of(user)):
                    if _matches(permission, body):
                        found.append(await _holding(blocks, user, permission, sources))
        return Holdings(holdings=tuple(found))

    async def _change(self, manager: UserManager, who: str, change: Callable[[User], User]) -> User:
        """Replace a user by what `change` makes of it, and make a pass for it."""

        async def write() -> User:
            stored = self._stored(manager, change(manager.data.user(who)))
            await self._sync(manager, [stored.account])
            return stored

        return await _exclusively(manager, write)

    def _stored(self, manager: UserManager, user: User) -> User:
        if manager.data.find_user(user.account) != user:
            manager.data.users.set(user.account, user.document())
        return user

    async def _sync(self, manager: UserManager, accounts: Collection[str]) -> None:
        for account in accounts:
            self._queue(account)  # in case the passes here fail
        await manager.sync(accounts)


async def _managed(call: Call) -> UserManager:
    call.require(MANAGE_USERS)
    return await open_manager(call.context)


async def _readable(call: Call) -> UserData:
    if not call.has(MANAGE_USERS):
        call.require(READ_USERS)
    return await open_data(call.context, call.context.data[call.contract])


async def _exclusively(manager: UserManager, write: Callable[[], Awaitable[_Result]]) -> _Result:
    async with manager.transaction() as tx:
        return await tx.run_exclusively(write)


def _check_free(data: UserData, name: str, account: str) -> None:
    """Check that no other account has a name."""
    for user in data.all_users():
        if user.name == name and user.account != account:
            raise Conflict(f"the name {name} belongs to {user.account}: choose another one, or rename that user")


def _set(data: UserData, name: str) -> PermissionSet:
    found = data.find_set(name)
    if found is None:
        raise InvalidInput(f"the set {name} does not exist: see `reside user sets`")
    return found


def _having(data: UserData, name: str) -> Iterable[User]:
    return [user for user in data.all_users() if name in user.sets]


def _matches(permission: Permission, wanted: WhoHas) -> bool:
    return wanted.replica in (None, permission.replica) and wanted.permission in (None, permission.permission)


async def _holding(blocks: OpenBlocks, user: User, permission: Permission, sources: tuple[str, ...]) -> Holding:
    block, ref = await blocks.find(permission.replica), people.ref_of(user.account, permission)
    if block is not None:
        await block.refresh_entry(ref.key)
    return Holding(
        user=user.name,
        account=user.account,
        permission=permission,
        sources=sources,
        in_force=block is not None and block.is_granted(ref),
    )
