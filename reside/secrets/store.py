"""The data of the replica *secret* in Jazz: a map for each secret, in a group whose members are its readers.

The root is the unique map `secret.v1` of the public group. The look-up of a name points to the map of the secret, whose
group belongs to this secret alone. The map says which map has the value; each value has a map of its own in the same
group, so the value before can be deleted, and the sync server erases it. Only this replica writes: a reader is no
writer, and what strangers upload under the name of a look-up does not count.

Invariants: the caller holds the lock of the root. A value becomes the current one by one transaction, once the sync
server has it. `stale` of the map of a secret names every other map with a value that may exist, so what a process
that died has left is deleted with the next change of the secret, or at the next start. Before a value is written, the
group has no other readers than those who are expected to be: the read key is rotated first.

All that was ever written to a map stays in its log. So after some changes a secret gets another map in the same group,
and the one before is deleted; readers look up the map at each change.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reside.jazz import AccountId, CoId, ValueNotFound
from reside.model.errors import Conflict, NotReady
from reside.model.identities import resolved
from reside.model.lookup import TARGET
from reside.model.secret_contract import (
    MAX_SECRETS,
    READ_SECRET,
    SECRET_CONTRACT,
    STATE,
    VALUE,
    SecretState,
    is_name,
    secret_by_name,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from contextlib import AbstractAsyncContextManager

    from reside.jazz import CoMap
    from reside.model.permissions import ControlBlockPermission
    from reside.replica import Context, Transaction

ROOT_NAME: Final = "secret.v1"
_INDEX: Final = "index"
"""Member of the root: id of a map that only this replica reads: name of a secret → id of its map."""
_STALE: Final = "stale"
REPLACE_AFTER: Final = 192
"""Transactions after which a secret gets another map. A value takes three."""


@dataclass(frozen=True)
class Secrets:
    """The data, opened."""

    context: Context
    index: CoMap

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """Open a transaction on the data."""
        return self.context.transaction(self.context.data[SECRET_CONTRACT].id)

    def names(self) -> list[str]:
        """Return the names of all secrets, those without a value, too."""
        return sorted(self.index)

    async def find(self, name: str) -> CoMap | None:
        """Return the map of a secret; None if it does not exist."""
        target = self.index.get(name)
        return await self.context.node.load_map(CoId(target)) if isinstance(target, str) else None

    async def state(self, name: str) -> SecretState | None:
        """Return the state of a secret; None if it never had a value."""
        found = await self.find(name)
        return None if found is None else SecretState.parse(found.get(STATE))

    async def ensure(self, name: str) -> CoMap:
        """Return the map of a secret; create it, its group and its look-up, as far as they do not exist.

        Raises:
            Conflict: there are too many secrets.
        """
        found, node = await self.find(name), self.context.node
        if found is None:
            if len(self.index) >= MAX_SECRETS:
                raise Conflict(f"there are {MAX_SECRETS} secrets, and no more are possible: delete some")
            found = node.create_group().create_map({"name": name})
            await node.flush()  # the index names no map that the server does not have
            self.index.set(name, found.id)
        await self._point_to(name, found)
        return found

    async def add_reader(self, name: str, account: str) -> None:
        """Let an account read a secret, which need not have a value yet."""
        await (await self.ensure(name)).group.add_member(AccountId(account), "reader")

    async def sync_readers(self, name: str) -> None:
        """Remove the readers of a secret that are not expected to be: they can read no value that is set from now on.

        A revocation counts before its handler has run, so this reads what is expected.

        Raises:
            NotReady: not all permissions can be read, so a reader could be removed by mistake.
        """
        found = await self.find(name)
        if found is None:
            return
        if not await self.context.rcb.refresh():
            raise NotReady("not all permissions can be read now: try again")
        due = {p.ref.account for p in self.permissions() if p.ref.name == READ_SECRET and _is_of(p, name)}
        for member in found.group.members():
            if member not in due and member != self.context.node.account_id:
                await found.group.remove_member(AccountId(member))

    def permissions(self) -> Iterable[ControlBlockPermission]:
        """Return the permissions of this contract that accounts are expected to have."""
        block = self.context.rcb.permissions()
        return [p for p in block if p.ref.contract == resolved(SECRET_CONTRACT) and p.expected.granted]

    async def write(self, name: str, value: str, *, by: str, handed: str) -> SecretState:
        """Make a value the current one, and delete the one before."""
        found, node = await self.ensure(name), self.context.node
        await self.sync_readers(name)
        before = SecretState.parse(found.get(STATE))
        if found.transaction_count >= REPLACE_AFTER:
            found = await self._replace_map(name, found)
        made = found.group.create_map()
        found.set(_STALE, [*_stale(found), made.id])
        made.set(VALUE, value)
        await node.flush()  # the state must not name a value that readers can't load
        state = SecretState(value=made.id, version=_next(before), at=node.now_ms(), by=by, handed=handed)
        await self._replace(name, found, before, state)
        return state

    async def delete(self, name: str, *, by: str) -> SecretState | None:
        """Delete the value of a secret. Its readers and writers keep their permissions.

        The name of a secret that nobody has a permission on is forgotten. None: there was neither a value nor such a
        name.
        """
        found = await self.find(name)
        before = None if found is None else SecretState.parse(found.get(STATE))
        state = None
        if found is not None and before is not None and before.value is not None:
            state = SecretState(version=_next(before), at=self.context.node.now_ms(), by=by)
            await self._replace(name, found, before, state)
        if not await self.forget_unused(name):
            return state
        return state or before or SecretState(version=0, at=self.context.node.now_ms(), by=by)

    async def forget_unused(self, name: str) -> bool:
        """Remove who may no longer read a secret; forget the name if it has no value and nobody has a permission on it.

        Returns:
            whether the name was known, and is forgotten.

        Raises:
            NotReady: see `sync_readers`.
        """
        await self.sync_readers(name)
        state = await self.state(name)
        if name not in self.index or (state is not None and state.value is not None):
            return False
        if any(_is_of(p, name) for p in self.permissions()):
            return False
        self.index.delete(name)
        return True

    async def erase_stale(self, name: str) -> None:
        """Delete what a process that died has left of the values of a secret."""
        found = await self.find(name)
        if found is not None:
            await self._erase(name, found)

    async def _point_to(self, name: str, found: CoMap) -> None:
        """Let the look-up of a secret point to its map."""
        pointer = await self.context.node.unique_map(self.context.public, secret_by_name(name))
        if pointer.get(TARGET) != found.id:
            pointer.set(TARGET, found.id)
            await self.context.node.flush()  # before a map that this one replaces is deleted

    async def _replace_map(self, name: str, found: CoMap) -> CoMap:
        """Give a secret another map, with the same content; the one before is stale."""
        made = found.group.create_map(found.as_dict() | {_STALE: [*_stale(found), found.id]})
        await self.context.node.flush()  # the index names no map that the server does not have
        self.index.set(name, made.id)
        return await self.ensure(name)

    async def _replace(self, name: str, found: CoMap, before: SecretState | None, state: SecretState) -> None:
        left = [co_id for co_id in _stale(found) if co_id != state.value]
        former = [] if before is None or before.value is None else [before.value]
        found.update({STATE: state.document(), _STALE: [*left, *former]})
        await self.context.node.flush()  # nobody is left with the id of a value that is gone
        await self._erase(name, found)

    async def _erase(self, name: str, found: CoMap) -> None:
        stale = _stale(found)
        if stale:
            await self._point_to(name, found)  # one of them may be the map before: a process died after it replaced it
        for co_id in stale:
            try:
                (await self.context.node.load_map(CoId(co_id))).destroy()
            except ValueNotFound:  # it is deleted, or its content was never sent
                continue
        if stale:
            found.set(_STALE, [])


async def make_data(context: Context) -> CoMap:
    """Create what is missing of the data, and return its root."""
    node = context.node
    async with context.transaction(node.unique_map_id(context.public.id, ROOT_NAME)) as tx:
        root = await node.unique_map(context.public, ROOT_NAME)

        async def make() -> None:
            if _INDEX not in root:
                root.set(_INDEX, node.create_group().create_map().id)

        await tx.run_exclusively(make)
    return root


async def open_secrets(context: Context) -> Secrets:
    """Open the data of a running replica."""
    return Secrets(context, await context.node.load_map(CoId(str(context.data[SECRET_CONTRACT][_INDEX]))))


def _is_of(permission: ControlBlockPermission, name: str) -> bool:
    return permission.ref.instance_id == name and is_name(name)


def _next(before: SecretState | None) -> int:
    return 1 if before is None else before.version + 1


def _stale(found: CoMap) -> list[str]:
    stored = found.get(_STALE)
    return [co_id for co_id in stored if isinstance(co_id, str)] if isinstance(stored, list) else []
