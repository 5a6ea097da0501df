"""A node: one account's view of the values on a sync server.

Values are kept in memory, written locally at once, and synced in the background. All of it runs on one event loop.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Self, TypeVar

from reside.jazz.disk import SqliteStore
from reside.jazz.errors import (
    InvalidContent,
    InvalidCredentials,
    ValueDeleted,
    ValueNotFound,
)
from reside.jazz.groups.account import Account, Credentials
from reside.jazz.groups.group import Group
from reside.jazz.groups.invites import Invite
from reside.jazz.groups.joining import accept_invite
from reside.jazz.ids import EVERYONE, CoId, Json
from reside.jazz.node.runtime import Runtime
from reside.jazz.node.statistics import Statistics
from reside.jazz.removals import UNIQUE_NAME, RemovalRecord, WritePolicy
from reside.jazz.values.cofeed import CoFeed
from reside.jazz.values.colist import CoList
from reside.jazz.values.comap import CoMap, assigning
from reside.jazz.values.owned import OwnedValue
from reside.jazz.values.stream import FileStream
from reside.jazz.values.text import CoPlainText
from reside.jazz.values.value import Value
from reside.jazz.wire.header import Header, Unique, unique_header

W = TypeVar("W", bound=OwnedValue)


def now_ms() -> int:
    """The clock: ms since the epoch."""
    return time.time_ns() // 1_000_000


class Node:
    """One account's view: its values, and their sync with a server.

    Use it as an async context manager; `register` or `login` comes next::

        async with Node(url, credentials) as node:
            await node.register("alice")
            group = node.create_group()
            greeting = group.create_map({"text": "hello"})
            await node.flush()

    Args:
        url: The sync server, `ws://…` or `wss://…`.
        credentials: Who it is.
        clock: Gives ms since the epoch.
        store: A file that keeps what the node holds, so that the next one begins with it and asks for the difference.
        connect_timeout: How long entering it waits for the first connection, in seconds.
        policy: What it refuses besides what the roles forbid; None for nothing.

    Attributes:
        account_id: The account of the credentials.
    """

    def __init__(
        self,
        url: str,
        credentials: Credentials,
        *,
        store: SqliteStore | None = None,
        clock: Callable[[], int] = now_ms,
        connect_timeout: float = 15.0,
        policy: WritePolicy | None = None,
    ) -> None:
        self.account_id = credentials.account_id
        self._runtime = Runtime(
            url, credentials, store=store, clock=clock, connect_timeout=connect_timeout, policy=policy
        )
        self._host = self._runtime.host

    async def __aenter__(self) -> Self:
        """Connects.

        Raises:
            JazzUnavailable: No connection within `connect_timeout`.
            NodeClosed: It was entered before.
            StoreFailed: The file of the local store can't be used.
        """
        await self._runtime.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends the connection. Everything that waits gets `NodeClosed`.

        What was not flushed is lost, but with a local store, from which the next node sends it.
        """
        await self._runtime.close()

    def now_ms(self) -> int:
        """The node's clock: ms since the epoch."""
        return self._host.now_ms()

    @property
    def connected(self) -> bool:
        """Whether there is a connection now; without one, writes wait for the next."""
        return self._runtime.connected

    @property
    def statistics(self) -> Statistics:
        """How much it holds and does now."""
        return self._runtime.statistics

    # Accounts

    @property
    def account(self) -> Account:
        """The own account, after `register` or `login`.

        Raises:
            InvalidContent: Neither was done yet.
        """
        value = self._host.objects.find(self.account_id)
        if not isinstance(value, Account):
            raise InvalidContent("no account yet: await node.register(name) or node.login() first")
        return value

    async def register(self, name: str) -> Account:
        """Publishes the account of the credentials, with a profile that everyone can read; loads it if it exists.

        Args:
            name: The profile's name, for a new account.
        """
        try:
            account = await self._host.load_as(self.account_id, Account, grace=0.0)
        except ValueNotFound:
            core = self._host.writer.create(self._runtime.account_header)
            account = self._host.object_of(core, Account)
            account._initialise()
        if account.profile_id is None:
            group = self.create_group()
            await group.add_member(EVERYONE, "reader")
            account._set_profile(group.create_map({"name": name}))
            await self.flush()
        else:
            await account.load_profile()
        await self._recall_removals()
        return account

    async def login(self) -> Account:
        """Loads the own account.

        Raises:
            ValueNotFound: The server does not have it: `register` it first.
            InvalidCredentials: It has no profile, so it was never completed: `register` it.
        """
        account = await self._host.load_as(self.account_id, Account)
        if account.profile_id is None:
            raise InvalidCredentials(f"the account {self.account_id} has no profile; register it first")
        await account.load_profile()
        await self._recall_removals()
        return account

    async def accept_invite(self, invite: Invite | str, *, timeout: float = 30.0) -> Value:  # noqa: ASYNC109 - as load
        """Takes the role that an invite gives, unless this account has it, or a higher one, directly.

        Args:
            invite: The invite, or its link.
            timeout: How long to wait for the value and for the invite to arrive, in seconds.

        Returns:
            What the invite leads to.

        Raises:
            NotPermitted: The invite was withdrawn.
            InvalidContent: It is no invite, or leads to what belongs to no group.
            ValueNotFound: The server does not have what it leads to.
        """
        self._runtime.check_open()
        found = Invite.parse(invite) if isinstance(invite, str) else invite
        return await accept_invite(self._host, found, timeout=timeout)

    # Loading

    async def load(self, co_id: str, *, timeout: float = 30.0) -> Value:  # noqa: ASYNC109 - raises our own error
        """Loads a value completely, with its group, the parents of that, and all authors.

        Raises:
            ValueNotFound: The server does not have it, or its owner.
            JazzTimeout: It did not come in time.
        """
        return await self._host.load_as(co_id, Value, timeout=timeout)

    async def load_map(self, co_id: str, *, timeout: float = 30.0) -> CoMap:  # noqa: ASYNC109 - as load
        """Loads a map; `WrongKind` if it is none. See `load`."""
        return await self._host.load_as(co_id, CoMap, timeout=timeout)

    async def load_list(self, co_id: str, *, timeout: float = 30.0) -> CoList:  # noqa: ASYNC109 - as load
        """Loads a list; `WrongKind` if it is none. See `load`."""
        return await self._host.load_as(co_id, CoList, timeout=timeout)

    async def load_feed(self, co_id: str, *, timeout: float = 30.0) -> CoFeed:  # noqa: ASYNC109 - as load
        """Loads a feed; `WrongKind` if it is none. See `load`."""
        return await self._host.load_as(co_id, CoFeed, timeout=timeout)

    async def load_text(self, co_id: str, *, timeout: float = 30.0) -> CoPlainText:  # noqa: ASYNC109 - as load
        """Loads a text; `WrongKind` if it is none. See `load`."""
        return await self._host.load_as(co_id, CoPlainText, timeout=timeout)

    async def load_file(self, co_id: str, *, timeout: float = 30.0, max_bytes: int | None = None) -> FileStream:  # noqa: ASYNC109 - as load
        """Loads a file and waits for its end; `WrongKind` if it is none. See `load` and `FileStream.until_finished`.

        Args:
            co_id: The file's id.
            timeout: In seconds, for each of the two.
            max_bytes: Refuse it if it is larger than this, as soon as that is known.
        """
        file = await self.open_file(co_id, timeout=timeout)
        await file.until_finished(timeout=timeout, max_bytes=max_bytes)
        return file

    async def open_file(self, co_id: str, *, timeout: float = 30.0) -> FileStream:  # noqa: ASYNC109 - as load
        """Loads a file that may still be on its way, or be written: `FileStream.chunks` gives its bytes as they come.

        Args:
            co_id: The file's id.
            timeout: In seconds, for the beginning.
        """
        return await self._host.load_as(co_id, FileStream, timeout=timeout, whole=False)

    async def load_group(self, co_id: str, *, timeout: float = 30.0) -> Group:  # noqa: ASYNC109 - as load
        """Loads a group; `WrongKind` if it is none. See `load`."""
        return await self._host.load_as(co_id, Group, timeout=timeout)

    async def load_account(self, co_id: str, *, timeout: float = 30.0) -> Account:  # noqa: ASYNC109 - as load
        """Loads an account; `WrongKind` if it is none. See `load`."""
        return await self._host.load_as(co_id, Account, timeout=timeout)

    def find(self, co_id: str) -> Value | None:
        """A value that was loaded or made here; None if it was not. Asks nobody."""
        return self._host.find(co_id)

    async def catch_up(self, *, timeout: float = 30.0) -> None:  # noqa: ASYNC109 - raises our own error
        """Waits until what the server had of all loaded values when asked is here.

        It is one round trip for a small value, the own profile. The server answers in order, so what it has
        acknowledged to other writers before comes before the answer.

        Raises:
            JazzTimeout: The server did not answer in time.
            InvalidContent: Neither `register` nor `login` was done yet.
        """
        self._runtime.check_open()
        await self._runtime.catch_up(self._host.store.core(self.account.profile.id), timeout)

    async def _recall_removals(self) -> None:
        guard = self._runtime.guard
        if guard is not None and guard.policy.remember:
            notes = await self.unique_map(self.account, UNIQUE_NAME)
            guard.record_in(RemovalRecord(self._host.store, notes))

    # Creating

    def create_group(self, name: str | None = None) -> Group:
        """A new group with this account as its admin.

        Args:
            name: Shown by tools; readable by everybody, never changes.
        """
        return self._host.create_group(name)

    def unique_map_id(self, owner: str, unique: Unique) -> CoId:
        """The id of the one map of this name in a group: everybody computes the same."""
        return unique_header("comap", owner, unique).co_id

    async def find_unique_map(self, owner: str, unique: Unique) -> CoMap | None:
        """Loads the map of a name in a group; None if nobody made it yet, `ValueDeleted` if it was deleted."""
        return await self._find_unique(unique_header("comap", owner, unique), CoMap)

    async def unique_map(self, owner: Group, unique: Unique, init: Mapping[str, Json] | None = None) -> CoMap:
        """Loads the map of a name in a group, or makes it.

        Args:
            owner: The owning group.
            unique: The name: a text that is not empty, or texts by texts.
            init: First content of a new map. Where two make it at once, only the earlier one's content counts.

        Raises:
            ValueDeleted: It was deleted, and can't be made again.
        """
        changes = assigning(init or {})
        return await self._unique(unique_header("comap", owner.id, unique), CoMap, changes)

    async def find_unique_list(self, owner: str, unique: Unique) -> CoList | None:
        """Loads the list of a name in a group; see `find_unique_map`."""
        return await self._find_unique(unique_header("colist", owner, unique), CoList)

    async def unique_list(self, owner: Group, unique: Unique, items: Iterable[Json] = ()) -> CoList:
        """Loads the list of a name in a group, or makes it; see `unique_map`."""
        changes = [{"op": "app", "value": item, "after": "start"} for item in items]
        return await self._unique(unique_header("colist", owner.id, unique), CoList, changes)

    async def find_unique_feed(self, owner: str, unique: Unique) -> CoFeed | None:
        """Loads the feed of a name in a group; see `find_unique_map`."""
        return await self._find_unique(unique_header("costream", owner, unique), CoFeed)

    async def unique_feed(self, owner: Group, unique: Unique, items: Iterable[Json] = ()) -> CoFeed:
        """Loads the feed of a name in a group, or makes it; see `unique_map`."""
        return await self._unique(unique_header("costream", owner.id, unique), CoFeed, list(items))

    async def _find_unique(self, header: Header, kind: type[W]) -> W | None:
        try:
            return await self._host.load_as(header.co_id, kind, grace=0.0)
        except ValueDeleted:
            raise
        except ValueNotFound:
            return None

    async def _unique(self, header: Header, kind: type[W], changes: Sequence[Json]) -> W:
        found = await self._find_unique(header, kind)
        return self._host.creator.unique(header, kind, changes) if found is None else found

    # Sending

    async def flush(self, *, timeout: float = 30.0) -> None:  # noqa: ASYNC109 - raises our own error
        """Waits until the server acknowledged everything written here so far, notes of removals among it.

        Raises:
            JazzTimeout: It did not in time; the writes stay queued.
        """
        await self._runtime.flush(timeout)

    async def drain(self) -> None:
        """Waits while more than 100 kB wait to be sent: for writers that make more than the network carries.

        It returns at once without a connection: then nothing waits, and the next one starts from what the server has.
        """
        await self._runtime.drain()
