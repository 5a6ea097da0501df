"""Control blocks in Jazz: a live reader, and the writes of Alpha and of the replica (docs/model.md, section 3).

A block is a map with a map of permissions, which has one map for each permission. Alpha writes the member `expected` of
a permission, the replica writes `current`, so neither overwrites the other. The map of a permission has a computable
id, so that of two who create it at the same time neither replaces the other's.

Invariants: Jazz validates that the author of a value may write it, and this module validates its shape; an entry whose
key does not equal its members is ignored. Only values that the block's own group owns count: otherwise a former manager
of control blocks would still write the values that it left in groups of its own.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import structlog

from reside.jazz import AccountId, CoId, JazzTimeout, ValueNotFound, WrongKind
from reside.model.errors import NotReady
from reside.model.permissions import ControlBlockPermission, Grant, PermissionRef

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from reside.jazz import CoMap, Node, Tracker

_log = structlog.get_logger(__name__)

_EXTERNAL_ENDPOINT = "externalEndpoint"
_LOCK_ACCESS = "lockAccess"
_ENTRY_PREFIX = "permission:"
"""The unique name of an entry is this prefix and the key of the permission."""
_AT_ONCE = 64
"""Permissions that are loaded at once: one after the other, each would take a round trip to the sync server."""
_CANDIDATES = 16
"""Maps that are tried as a block's map of permissions. The first is the right one, unless a manager was hostile."""


class ControlBlock:
    """One control block, loaded. Reads are synchronous and return the current state.

    Attributes:
        root: the block's map.
    """

    def __init__(self, node: Node, root: CoMap, permissions: CoMap) -> None:
        self.root = root
        self._listeners: list[Callable[[], None]] = []
        self._watchers: WeakSet[asyncio.Event] | None = None  # Alpha has a block of each replica and no such event
        self._node = node
        self._permissions = permissions
        self._entries: dict[str, CoMap] = {}
        self._foreign: dict[str, CoId] = {}
        self._keys: dict[str, dict[str, None]] = {}
        self._changed: dict[str, set[str]] = {}
        self._listing: Tracker | None = None
        self._unread: set[str] = set()
        self._refreshing = asyncio.Lock()
        self._subscriptions: dict[str, Callable[[], None]] = {}

    @classmethod
    async def load(cls, node: Node, control_block_id: str) -> ControlBlock:
        """Load a block with all its permissions.

        Raises:
            ValueNotFound: the block does not exist.
            NotReady: the block has no readable content, for example because this account may not read it yet.
        """
        block = await cls.open(node, control_block_id)
        await block.follow()
        return block

    @classmethod
    async def open(cls, node: Node, control_block_id: str) -> ControlBlock:
        """Load a block without its permissions, for a caller that then asks for some of them (`refresh_entry`).

        It is notified only of changes of these permissions: other changes are read when the caller asks for them.

        Raises:
            ValueNotFound, NotReady: see `load`.
        """
        root = await node.load_map(CoId(control_block_id))
        return cls(node, root, await _load_permissions(node, root))

    async def follow(self) -> None:
        """Load all permissions, and notify of all changes of the block from now on."""
        self._subscribe(self.root, lambda _: self._notify())
        self._subscribe(self._permissions, lambda _: self._notify())
        await self.refresh()

    @property
    def id(self) -> CoId:
        """Id of the block's map."""
        return self.root.id

    @property
    def number(self) -> int:
        """The block's member `id`, which is the id of the replica."""
        number = self.root.get("id")
        if not isinstance(number, int):
            raise NotReady(f"control block {self.id} has no id yet")
        return number

    @property
    def name(self) -> str:
        """Name of the replica."""
        return str(self.root.get("name", ""))

    def requirements(self) -> dict[str, list[AccountId]]:
        """Return for each requirement, by key, the accounts of the replicas that serve it."""
        found = self.root.get("requirements")
        named = found if isinstance(found, dict) else {}
        return {
            key: [AccountId(account) for account in accounts if isinstance(account, str)]
            for key, accounts in named.items()
            if isinstance(accounts, list)
        }

    @property
    def has_external_endpoint(self) -> bool:
        """Whether the block says at which address clients outside of the cluster reach the replica."""
        return _EXTERNAL_ENDPOINT in self.root

    @property
    def external_endpoint(self) -> str | None:
        """This address; None: there is none."""
        found = self.root.get(_EXTERNAL_ENDPOINT)
        return found if isinstance(found, str) else None

    def set_external_endpoint(self, url: str | None) -> None:
        """Write this address (for Alpha)."""
        self.root.set(_EXTERNAL_ENDPOINT, url)

    @property
    def lock_access(self) -> str | None:
        """Id of the map with the replica's user of etcd; None: Alpha has not written it yet."""
        found = self.root.get(_LOCK_ACCESS)
        return found if isinstance(found, str) else None

    def set_lock_access(self, map_id: str) -> None:
        """Write the id of this map (for Alpha)."""
        self.root.set(_LOCK_ACCESS, map_id)

    def permissions(self) -> tuple[ControlBlockPermission, ...]:
        """Return the permissions that are loaded; `refresh` loads new ones."""
        return self._parsed(self._entries)

    def permissions_of(self, account: str, keys: Iterable[str] | None = None) -> tuple[ControlBlockPermission, ...]:
        """Return the loaded permissions of one grantee, or only those with some of its keys."""
        return self._parsed(self._keys.get(account, ()) if keys is None else keys)

    def find(self, ref: PermissionRef) -> ControlBlockPermission | None:
        """Return the entry of a permission; None if it does not exist."""
        key = ref.key
        if not self._known(key):
            return None
        permission = parse_permission(key, self._entries[key].as_dict())
        return permission if permission is not None and permission.ref == ref else None

    def is_granted(self, ref: PermissionRef) -> bool:
        """Return whether exactly this permission is in force now."""
        permission = self.find(ref)
        return permission is not None and permission.in_force

    def was_granted(self, ref: PermissionRef, at: int) -> bool:
        """Return whether what the grantee wrote at a time (ms) counts.

        That is so while the permission is in force. Between a revocation and the end of its handler, which may take
        over what the grantee has written, it is so for what is dated before the revocation.
        """
        permission = self.find(ref)
        if permission is None or permission.in_force or permission.expected.granted:
            return permission is not None and permission.in_force
        revocation = self._entries[ref.key].edit("expected")
        is_current = permission.current is not None and permission.current.granted
        return is_current and revocation is not None and at < revocation.at

    def grantees(self) -> list[str]:
        """Return the accounts that have loaded permissions."""
        return list(self._keys)

    def take_changed(self) -> dict[str, set[str]]:
        """Return the permissions that may have changed since the last call: grantee → their keys."""
        changed, self._changed = self._changed, {}
        return changed

    def has_unread(self) -> bool:
        """Return whether permissions were added, replaced or removed since the last `refresh`, or could not be read."""
        self._unread |= self._listed()
        return bool(self._unread)

    async def refresh(self) -> bool:
        """Load the permissions that were added or replaced since the last call.

        Returns:
            whether all are loaded; the log says which are not. The next call tries those again.
        """
        async with self._refreshing:
            self._unread |= self._listed()
            unread, is_complete = list(self._unread), True
            for start in range(0, len(unread), _AT_ONCE):
                keys = unread[start : start + _AT_ONCE]
                self._unread.difference_update(keys)  # before the load, during which they may change again
                try:
                    is_complete = await self._refresh_entries(keys) and is_complete
                except BaseException:
                    self._unread.update(keys)
                    raise
            return is_complete

    def _listed(self) -> set[str]:
        """Return the permissions that were added, replaced or removed since the last call; at first all."""
        if self._listing is None:
            self._listing = self._permissions.track()
        return self._listing.take()

    async def _refresh_entries(self, keys: list[str]) -> bool:
        """Load permissions that were added or replaced, at once; return whether there is nothing left to load."""
        loads = [self.refresh_entry(key) for key in keys]
        loaded = [await loads[0]] if len(loads) == 1 else await asyncio.gather(*loads)
        for key in keys:
            if key in self._entries and not self._known(key):  # its entry was removed
                self._entry_changed(key)
        return all(loaded)

    async def refresh_entry(self, key: str) -> bool:
        """Load a permission if it was added or replaced; return whether there is nothing left to load."""
        value = self._permissions.get(key)
        if not isinstance(value, str) or self._known(key) or self._foreign.get(key) == value:
            return True
        try:
            entry = await self._node.load_map(CoId(value))
        except (ValueNotFound, JazzTimeout, WrongKind) as error:
            self._unread.add(key)  # it may be there later
            _log.warning("permission can't be loaded", control_block=self.id, key=key, error=str(error))
            return False
        if _owned_alike(entry, self.root):
            self._add(key, entry)
        else:
            self._foreign[key] = entry.id
            _log.warning("permission of another group is ignored", control_block=self.id, key=key, entry=entry.id)
        return True

    async def set_expected(self, ref: PermissionRef, grant: Grant) -> None:
        """Write the expected grant of a permission, if it differs; create the entry if it does not exist.

        For Alpha, and for accounts with `rcb:manage:all`: they may create an entry at the same time.
        """
        await self.refresh_entry(ref.key)
        entry = self.find(ref)
        if entry is not None:
            if entry.expected != grant:
                self._entries[ref.key].set("expected", grant.document())
            return
        name = f"{_ENTRY_PREFIX}{ref.key}"
        made = await self._node.upsert_unique_map(self.root.group, name, _document(ref, grant))
        self._permissions.set(ref.key, made.id)
        self._add(ref.key, made)

    def expected_by(self, ref: PermissionRef) -> str | None:
        """Return the account that wrote the expected grant of a permission last; None if the entry does not exist."""
        edit = self._entries[ref.key].edit("expected") if self._known(ref.key) else None
        return None if edit is None else edit.by

    def set_current(self, ref: PermissionRef, grant: Grant) -> None:
        """Write the current grant of a permission (for the replica).

        Raises:
            NotReady: the block has no such permission.
        """
        if self.find(ref) is None:
            raise NotReady(f"control block {self.id} has no permission {ref.key}")
        self._entries[ref.key].set("current", grant.document())

    def set_requirements(self, requirements: Mapping[str, list[AccountId]]) -> None:
        """Write which replicas serve each requirement (for Alpha)."""
        members = {key: list(accounts) for key, accounts in requirements.items()}
        if self.root.get("requirements") != members:
            self.root.set("requirements", members)

    def on_change(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` at every change of a loaded permission, and of the block if it was loaded with `load`.

        Returns:
            a function that unsubscribes it.
        """
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def watch(self) -> asyncio.Event:
        """Return a new event that is set at every change of the block or of a permission. The caller clears it.

        The block keeps only a weak reference to the event.
        """
        event = asyncio.Event()
        if self._watchers is None:
            self._watchers = WeakSet()
        self._watchers.add(event)
        return event

    def close(self) -> None:
        """Unsubscribe from all changes."""
        for unsubscribe in self._subscriptions.values():
            unsubscribe()
        self._subscriptions.clear()

    def _parsed(self, keys: Iterable[str]) -> tuple[ControlBlockPermission, ...]:
        parsed = (parse_permission(key, self._entries[key].as_dict()) for key in keys if self._known(key))
        return tuple(permission for permission in parsed if permission is not None)

    def _known(self, key: str) -> bool:
        return key in self._entries and self._permissions.get(key) == self._entries[key].id

    def _add(self, key: str, entry: CoMap) -> None:
        account = key.partition(":")[0]
        self._entries[key] = entry
        self._keys.setdefault(account, {})[key] = None
        self._subscribe(entry, lambda _: self._entry_changed(key))
        self._entry_changed(key)

    def _subscribe(self, value: CoMap, listener: Callable[[CoMap], None]) -> None:
        if value.id not in self._subscriptions:
            self._subscriptions[value.id] = value.on_change(listener)

    def _entry_changed(self, key: str) -> None:
        self._changed.setdefault(key.partition(":")[0], set()).add(key)
        self._notify()

    def _notify(self) -> None:
        for event in list(self._watchers or ()):
            event.set()
        for listener in list(self._listeners):
            listener()


async def _load_permissions(node: Node, root: CoMap) -> CoMap:
    """Return the map of permissions that a block has had from its beginning.

    Raises:
        NotReady: the block has no readable content.
    """
    named = [edit.value for edit in root.history("permissions") if isinstance(edit.value, str)]
    for permissions_id in named[:_CANDIDATES]:
        try:
            found = await node.load_map(CoId(permissions_id))
        except (ValueNotFound, WrongKind):
            continue
        if _owned_alike(found, root):
            return found
    raise NotReady(f"control block {root.id} has no readable content: is this account one of its readers?")


def _owned_alike(value: CoMap, root: CoMap) -> bool:
    return value.has_owner and root.has_owner and value.group.id == root.group.id


def parse_permission(key: str, members: Mapping[str, Any]) -> ControlBlockPermission | None:
    """Return the permission that the members of a map represent; None (no grant) if they are inconsistent."""
    account, contract, name = members.get("account"), members.get("identity"), members.get("name")
    instance_id = members.get("instanceId")
    if not isinstance(account, str) or not isinstance(contract, str) or not isinstance(name, str):
        return None
    ref = PermissionRef(account, contract, name, instance_id if isinstance(instance_id, str) else None)
    if ref.key != key:
        return None
    expected = Grant.parse(members.get("expected")) or Grant(granted=False)
    return ControlBlockPermission(ref, expected, Grant.parse(members.get("current")))


def _document(ref: PermissionRef, expected: Grant) -> dict[str, Any]:
    members = {"identity": ref.contract, "name": ref.name, "account": ref.account, "expected": expected.document()}
    return members if ref.instance_id is None else {**members, "instanceId": ref.instance_id}
