"""A node: one account's view of the values on a sync server.

Values are kept in memory, written locally first, and synced in the background. All of it runs on one event loop.
"""

import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn, Self

from reside.jazz.errors import InvalidCredentials, ValueNotFound
from reside.jazz.groups.account import Account, Credentials
from reside.jazz.groups.group import Group
from reside.jazz.groups.invites import Invite
from reside.jazz.groups.joining import accept_invite
from reside.jazz.ids import EVERYONE
from reside.jazz.memory.store import no_account
from reside.jazz.node.notes import UnfencedNotes
from reside.jazz.node.runtime import Runtime
from reside.jazz.node.statistics import Statistics
from reside.jazz.node.unique_values import UniqueValues
from reside.jazz.operations.loader import ABSENT_GRACE_S
from reside.jazz.removals import UNIQUE_NAME, RemovalRecord, WritePolicy
from reside.jazz.values.cofeed import CoFeed
from reside.jazz.values.colist import CoList
from reside.jazz.values.comap import CoMap
from reside.jazz.values.stream import FileStream
from reside.jazz.values.text import CoPlainText
from reside.jazz.values.value import Value

if TYPE_CHECKING:
    from reside.jazz.disk.database import SqliteStore


def now_ms() -> int:
    """Return the time in ms since the epoch."""
    return time.time_ns() // 1_000_000


class Node(UniqueValues):
    """One account's view of its values, synced with one server or several.

    Use it as an async context manager, and then call `register` or `login`::

        async with Node(url, credentials) as node:
            await node.register("alice")
            group = node.create_group()
            greeting = group.create_map({"text": "hello"})
            await node.flush()

    Args:
        url: the sync server, `ws://…` or `wss://…`, or several of them. With several, a value is loaded from the first
            that sends it completely, what is written or loaded is sent to all of them, and a write is acknowledged once
            all of them have it.
        credentials: the account and its secret.
        clock: returns ms since the epoch.
        store: a file that keeps the node's values, so that the next node loads only the difference from the server.
        connect_timeout: how long to wait for the first connection, in seconds.
        policy: what the node refuses in addition to what roles forbid; None for nothing.
        prove_account: whether to prove the account at each connection, for servers that require it. The proof is a
            parameter of the address, so use it only where no proxy logs addresses.

    Attributes:
        account_id: the account of the credentials.
    """

    def __init__(
        self,
        url: str | Sequence[str],
        credentials: Credentials,
        *,
        store: "SqliteStore | None" = None,
        clock: Callable[[], int] = now_ms,
        connect_timeout: float = 15.0,
        policy: WritePolicy | None = None,
        prove_account: bool = False,
    ) -> None:
        self.account_id = credentials.account_id
        self._runtime = Runtime(
            [url] if isinstance(url, str) else list(dict.fromkeys(url)),
            credentials,
            store=store,
            clock=clock,
            connect_timeout=connect_timeout,
            policy=policy,
            prove_account=prove_account,
        )
        self._host = self._runtime.host

    async def __aenter__(self) -> Self:
        """Open the node and wait for the first connection.

        Raises:
            JazzUnavailable: there was no connection within `connect_timeout`.
            NodeClosed: the node was opened before.
            StoreFailed: the file of the local store can't be used.
        """
        await self._runtime.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection. Every pending operation raises `NodeClosed`.

        Unflushed writes are lost, unless a local store keeps them: then the next node sends them.
        """
        await self._runtime.close()

    async def until_closed(self) -> NoReturn:
        """Wait until the node ends, and raise the error that says why.

        A node ends when it is closed; when its URL is malformed, or its local store fails; or when it has written under
        a fence (`fenced_writes`) that does not let it send the writes any more.
        """
        await self._runtime.until_closed()

    async def until_reconnected(self) -> None:
        """Wait until a new connection to a server is opened.

        The server may have lost something, as after it was restored from a backup. What this node has in memory it gets
        back. What the node has evicted is to be looked at again (`CoMap.release`).

        Raises:
            JazzError: the node has ended.
        """
        await self._runtime.until_reconnected()

    def now_ms(self) -> int:
        """Return the time of the node's clock in ms since the epoch."""
        return self._host.now_ms()

    @property
    def connected(self) -> bool:
        """Whether the node is connected; if not, writes wait for the next connection."""
        return self._runtime.connected

    @property
    def statistics(self) -> Statistics:
        """Current figures about the node."""
        return self._runtime.statistics

    # Accounts

    @property
    def account(self) -> Account:
        """The node's own account, available after `register` or `login`.

        Raises:
            InvalidState: neither was called yet.
        """
        value = self._host.objects.find(self.account_id)
        if not isinstance(value, Account):
            raise no_account()
        return value

    async def register(self, name: str) -> Account:
        """Publish the account of the credentials with a profile that everyone can read. If the account exists, load it.

        Args:
            name: the profile's name, for a new account.
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
        await self._load_removals()
        return account

    async def login(self) -> Account:
        """Load the node's own account.

        Raises:
            ValueNotFound: the server does not have it; call `register` first.
            InvalidCredentials: it has no profile, so its registration is incomplete; call `register`.
        """
        try:
            account = await self._host.load_as(self.account_id, Account)
        except ValueNotFound as error:
            raise ValueNotFound(error.value, f"{error.why}; await node.register(name) first") from None
        if account.profile_id is None:
            raise InvalidCredentials(f"the account {self.account_id} has no profile; await node.register(name) first")
        await account.load_profile()
        await self._load_removals()
        return account

    async def accept_invite(self, invite: Invite | str, *, timeout: float = 30.0) -> Value:  # noqa: ASYNC109 - as load
        """Take the role that an invite gives, unless this account already has it, or a higher one, directly.

        Args:
            invite: the invite, or its link.
            timeout: how long to wait for the value and for the invite to arrive, in seconds.

        Returns:
            the value that the invite refers to.

        Raises:
            NotPermitted: the invite was revoked.
            InvalidArgument: it is not an invite, or it refers to a value without an owner group.
            ValueNotFound: the server does not have the value that it refers to.
        """
        self._runtime.check_open()
        found = Invite.parse(invite) if isinstance(invite, str) else invite
        return await accept_invite(self._host, found, timeout=timeout)

    # Loading

    async def load(self, co_id: str, *, timeout: float = 30.0) -> Value:  # noqa: ASYNC109 - raises our own error
        """Load a value completely, with its group, that group's parents, and all authors.

        Raises:
            ValueNotFound: the server does not have the value or its owner.
            JazzTimeout: it was not loaded in time.
        """
        return await self._host.load_as(co_id, Value, timeout=timeout)

    async def load_map(self, co_id: str, *, timeout: float = 30.0, grace: float = ABSENT_GRACE_S) -> CoMap:  # noqa: ASYNC109 - as load
        """Load a map; raise `WrongKind` if it is of another kind. See `load`.

        Args:
            co_id: the map's id.
            timeout: how long to wait, in seconds.
            grace: how long to wait for a map that the server does not have, in seconds: its writer may be uploading it.
        """
        return await self._host.load_as(co_id, CoMap, timeout=timeout, grace=grace)

    async def load_list(self, co_id: str, *, timeout: float = 30.0) -> CoList:  # noqa: ASYNC109 - as load
        """Load a list; raise `WrongKind` if it is of another kind. See `load`."""
        return await self._host.load_as(co_id, CoList, timeout=timeout)

    async def load_feed(self, co_id: str, *, timeout: float = 30.0) -> CoFeed:  # noqa: ASYNC109 - as load
        """Load a feed; raise `WrongKind` if it is of another kind. See `load`."""
        return await self._host.load_as(co_id, CoFeed, timeout=timeout)

    async def load_text(self, co_id: str, *, timeout: float = 30.0) -> CoPlainText:  # noqa: ASYNC109 - as load
        """Load a text; raise `WrongKind` if it is of another kind. See `load`."""
        return await self._host.load_as(co_id, CoPlainText, timeout=timeout)

    async def load_file(self, co_id: str, *, timeout: float = 30.0, max_bytes: int | None = None) -> FileStream:  # noqa: ASYNC109 - as load
        """Load a file and wait for its end; raise `WrongKind` if it is of another kind.

        See `load` and `FileStream.until_finished`.

        Args:
            co_id: the file's id.
            timeout: in seconds, for each of the two steps.
            max_bytes: maximum size; a larger file is refused as soon as its size is known.
        """
        file = await self.open_file(co_id, timeout=timeout)
        await file.until_finished(timeout=timeout, max_bytes=max_bytes)
        return file

    async def open_file(self, co_id: str, *, timeout: float = 30.0) -> FileStream:  # noqa: ASYNC109 - as load
        """Load a file that may be incomplete. `FileStream.chunks` yields its bytes as they arrive.

        Args:
            co_id: the file's id.
            timeout: how long to wait for the beginning, in seconds.
        """
        return await self._host.load_as(co_id, FileStream, timeout=timeout, whole=False)

    async def load_group(self, co_id: str, *, timeout: float = 30.0) -> Group:  # noqa: ASYNC109 - as load
        """Load a group; raise `WrongKind` if it is of another kind. See `load`."""
        return await self._host.load_as(co_id, Group, timeout=timeout)

    async def load_account(self, co_id: str, *, timeout: float = 30.0) -> Account:  # noqa: ASYNC109 - as load
        """Load an account; raise `WrongKind` if it is of another kind. See `load`."""
        return await self._host.load_as(co_id, Account, timeout=timeout)

    def find(self, co_id: str) -> Value | None:
        """Return a value that was loaded or created here; None if there is none. It does not ask the server."""
        return self._host.find(co_id)

    async def catch_up(self, *, timeout: float = 30.0) -> None:  # noqa: ASYNC109 - raises our own error
        """Wait until everything that the server had of all loaded values at the time of the call has arrived.

        It costs one round trip, for the own profile, a small value. The server answers in order: everything that it
        acknowledged to other writers before the request arrives before the answer.

        Raises:
            JazzTimeout: the server did not answer in time.
            InvalidState: neither `register` nor `login` was called yet.
        """
        self._runtime.check_open()
        await self._runtime.catch_up(self._host.store.core(self.account.profile.id), timeout)

    async def _load_removals(self) -> None:
        guard = self._runtime.guard
        if guard is not None and guard.policy.remember:
            notes = await self.unique_map(self.account, UNIQUE_NAME)
            guard.record_in(RemovalRecord(self._host.store, UnfencedNotes(notes)))

    # Creating

    def create_group(self, name: str | None = None) -> Group:
        """Create a group with this account as its admin.

        Args:
            name: shown by tools; everyone can read it, and it never changes.

        Raises:
            InvalidState: neither `register` nor `login` was called yet.
        """
        return self._host.create_group(name)

    # Sending

    async def flush(self, *, timeout: float = 30.0) -> None:  # noqa: ASYNC109 - raises our own error
        """Wait until the server acknowledged everything written here so far, including the records of removals.

        Raises:
            JazzTimeout: it did not acknowledge in time; the writes stay queued.
        """
        await self._runtime.flush(timeout)

    async def drain(self) -> None:
        """Wait while more than 100 kB are queued to be sent.

        Use it in writers that produce more than the network carries. It returns immediately without a connection: the
        queue is empty then, and the next connection starts from what the server has.
        """
        await self._runtime.drain()
