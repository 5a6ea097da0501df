"""A node: one account's view of the values on a sync server.

Values are kept in memory, written locally at once, and synced in the background. All of it runs on one event loop.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Final, Self, TypeVar

from .account import Account, Credentials
from .cofeed import CoFeed
from .colist import CoList
from .comap import CoMap, assigning
from .covalue import Core
from .creating import Creator
from .crypto import Agent
from .disk import Keeper, SqliteStore
from .errors import (
    InvalidContent,
    InvalidCredentials,
    JazzError,
    NodeClosed,
    StoreFailed,
    ValueDeleted,
    ValueNotFound,
)
from .group import Group
from .header import Header, Unique, account_header, group_header, unique_header
from .healing import heal_once
from .ids import EVERYONE, CoId, Json, SessionId
from .invites import Invite
from .joining import accept_invite
from .loading import ABSENT_GRACE_S, Loader
from .objects import Objects
from .owned import OwnedValue
from .removal_memory import UNIQUE_NAME, RemovalMemory
from .removals import WriteGuard, WritePolicy
from .statistics import Statistics
from .store import Store
from .stream import FileStream
from .sweeping import unneeded
from .sync import Sync, Transport
from .text import CoPlainText
from .value import Value
from .waiting import Waiting
from .watch import Watchable, Watches
from .writer import Writer

_SWEEP_BEYOND: Final = 512
"""Up to so many values are kept in memory whether anybody holds them or not."""
V = TypeVar("V", bound=Watchable)
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
        watches: The watchers, for this package.
        store: The values, for this package.
        writer: What writes them, for this package.
        creator: What makes new ones, for this package.
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
        agent = Agent.from_secret(credentials.agent_secret)
        self._account_header = account_header(agent.agent_id)
        if str(self._account_header.co_id) != credentials.account_id:
            raise InvalidCredentials(f"the agent secret belongs to another account than {credentials.account_id}")
        self.account_id = credentials.account_id
        self._clock = clock
        self._connect_timeout = connect_timeout
        self.store = Store(agent, self.account_id, self._changed)
        self._policy = policy or WritePolicy()
        if policy is not None:
            self.store.guard = WriteGuard(self.store, policy, clock)
        self.watches = Watches()
        self._transport = Transport(
            url, on_connect=self._connected, on_disconnect=self._disconnected, on_frame=self._received
        )
        self._sync = Sync(self.store, self._transport.send, on_acknowledged=self._acknowledged, on_whole=self._on_whole)
        self.writer = Writer(self.store, self._sync, clock, self._check_open)
        self._keeper = self._keep(store)
        self._waiting = Waiting(self._check_open)
        self._objects = Objects(self)
        self.creator = Creator(self.writer, self._objects, clock)
        self._loader = Loader(self.store, self._sync, self._transport, self._waiting, self._why_no_answer)
        self._wake_planned = self._save_planned = self._sweep_planned = False
        self._sweep_beyond = _SWEEP_BEYOND
        self._runner: asyncio.Task[None] | None = None
        self._entered = False
        self._end: JazzError | None = NodeClosed("the node was not entered; use `async with Node(…)`")

    # Life

    async def __aenter__(self) -> Self:
        """Connects.

        Raises:
            JazzUnavailable: No connection within `connect_timeout`.
            NodeClosed: It was entered before.
            StoreFailed: The file of the local store can't be used.
        """
        if self._entered:
            raise NodeClosed("a node can be entered once; make a new one")
        self._entered = True
        if self._keeper is not None:
            for core in self._keeper.open():
                self._sync.unacknowledged[core.co_id] = None
        self._end = None
        self._runner = asyncio.create_task(self._transport.run(), name=f"jazz {self.account_id}")
        self._runner.add_done_callback(self._runner_ended)
        try:
            await self._transport.wait_connected(self._connect_timeout)
            self._check_open()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends the connection. Everything that waits gets `NodeClosed`.

        What was not flushed is lost, but with a local store, from which the next node sends it.
        """
        runner, self._runner = self._runner, None
        if runner is not None:
            runner.cancel()
            await asyncio.wait([runner])
        self._finish(NodeClosed("the node was closed"))

    def now_ms(self) -> int:
        """The node's clock: ms since the epoch."""
        return self._clock()

    @property
    def connected(self) -> bool:
        """Whether there is a connection now; without one, writes wait for the next."""
        return self._end is None and self._transport.connected.is_set()

    @property
    def statistics(self) -> Statistics:
        """How much it holds and does now."""
        return Statistics(
            len(self.store.cores),
            self.watches.count,
            self._sync.loads_in_flight,
            self._transport.outbox.buffered,
            len(self._sync.unacknowledged),
        )

    # Accounts

    @property
    def account(self) -> Account:
        """The own account, after `register` or `login`.

        Raises:
            InvalidContent: Neither was done yet.
        """
        value = self._objects.find(self.account_id)
        if not isinstance(value, Account):
            raise InvalidContent("no account yet: await node.register(name) or node.login() first")
        return value

    async def register(self, name: str) -> Account:
        """Publishes the account of the credentials, with a profile that everyone can read; loads it if it exists.

        Args:
            name: The profile's name, for a new account.
        """
        try:
            account = await self.load_as(self.account_id, Account, grace=0.0)
        except ValueNotFound:
            core = self.writer.create(self._account_header)
            account = self._objects.of(core, Account)
            account.initialise()
        if account.profile_id is None:
            group = self.create_group()
            await group.add_member(EVERYONE, "reader")
            account.set_profile(group.create_map({"name": name}))
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
        account = await self.load_as(self.account_id, Account)
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
        self._check_open()
        found = Invite.parse(invite) if isinstance(invite, str) else invite
        return await accept_invite(self, found, timeout=timeout)

    # Loading

    async def load(self, co_id: str, *, timeout: float = 30.0) -> Value:  # noqa: ASYNC109 - raises our own error
        """Loads a value completely, with its group, the parents of that, and all authors.

        Raises:
            ValueNotFound: The server does not have it, or its owner.
            JazzTimeout: It did not come in time.
        """
        return await self.load_as(co_id, Value, timeout=timeout)

    async def load_map(self, co_id: str, *, timeout: float = 30.0) -> CoMap:  # noqa: ASYNC109 - as load
        """Loads a map; `WrongKind` if it is none. See `load`."""
        return await self.load_as(co_id, CoMap, timeout=timeout)

    async def load_list(self, co_id: str, *, timeout: float = 30.0) -> CoList:  # noqa: ASYNC109 - as load
        """Loads a list; `WrongKind` if it is none. See `load`."""
        return await self.load_as(co_id, CoList, timeout=timeout)

    async def load_feed(self, co_id: str, *, timeout: float = 30.0) -> CoFeed:  # noqa: ASYNC109 - as load
        """Loads a feed; `WrongKind` if it is none. See `load`."""
        return await self.load_as(co_id, CoFeed, timeout=timeout)

    async def load_text(self, co_id: str, *, timeout: float = 30.0) -> CoPlainText:  # noqa: ASYNC109 - as load
        """Loads a text; `WrongKind` if it is none. See `load`."""
        return await self.load_as(co_id, CoPlainText, timeout=timeout)

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
        return await self.load_as(co_id, FileStream, timeout=timeout, whole=False)

    async def load_group(self, co_id: str, *, timeout: float = 30.0) -> Group:  # noqa: ASYNC109 - as load
        """Loads a group; `WrongKind` if it is none. See `load`."""
        return await self.load_as(co_id, Group, timeout=timeout)

    async def load_account(self, co_id: str, *, timeout: float = 30.0) -> Account:  # noqa: ASYNC109 - as load
        """Loads an account; `WrongKind` if it is none. See `load`."""
        return await self.load_as(co_id, Account, timeout=timeout)

    async def load_as(
        self,
        co_id: str,
        kind: type[V],
        *,
        timeout: float = 30.0,  # noqa: ASYNC109 - as load
        grace: float = ABSENT_GRACE_S,
        whole: bool = True,
    ) -> V:
        """Loads a value of a class; `WrongKind` if it is another. See `load`.

        Args:
            co_id: The value's id.
            kind: The class of its object.
            timeout: In seconds.
            grace: How long to wait for what the server does not have, in seconds: its writer may be uploading it.
            whole: Wait for all of its content; if not, what is there at first may be the beginning of it only.
        """
        self._check_open()
        value = self._objects.of(await self._loader.load(co_id, timeout, grace, whole=whole), kind)
        group = value.group if isinstance(value, OwnedValue) else value
        if isinstance(group, Group):
            heal_once(group)
        return value

    def find(self, co_id: str) -> Value | None:
        """A value that was loaded or made here; None if it was not. Asks nobody."""
        return self._objects.find(co_id)

    def has(self, value: Value) -> bool:
        """Whether all of a value is here, and all that it needs: loading it again would not wait."""
        return self._loader.has(self.store.core(value.id))

    async def catch_up(self, *, timeout: float = 30.0) -> None:  # noqa: ASYNC109 - raises our own error
        """Waits until what the server had of all loaded values when asked is here.

        It is one round trip for a small value, the own profile. The server answers in order, so what it has
        acknowledged to other writers before comes before the answer.

        Raises:
            JazzTimeout: The server did not answer in time.
            InvalidContent: Neither `register` nor `login` was done yet.
        """
        self._check_open()
        await self._loader.catch_up(self.store.core(self.account.profile.id), timeout)

    async def _recall_removals(self) -> None:
        if self._policy.remember and self.store.guard is not None:
            notes = await self.unique_map(self.account, UNIQUE_NAME)
            self.store.guard.remember_in(RemovalMemory(self.store, notes))

    def _why_no_answer(self) -> str:
        return "the server did not answer" if self.connected else "there is no connection"

    # Creating

    def create_group(self, name: str | None = None) -> Group:
        """A new group with this account as its admin.

        Args:
            name: Shown by tools; readable by everybody, never changes.
        """
        core = self.writer.create(group_header(self.account_id, name, self._clock()))
        group = self._objects.of(core, Group)
        group.initialise()
        return group

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
            return await self.load_as(header.co_id, kind, grace=0.0)
        except ValueDeleted:
            raise
        except ValueNotFound:
            return None

    async def _unique(self, header: Header, kind: type[W], changes: Sequence[Json]) -> W:
        found = await self._find_unique(header, kind)
        return self.creator.unique(header, kind, changes) if found is None else found

    # Sending

    async def flush(self, *, timeout: float = 30.0) -> None:  # noqa: ASYNC109 - raises our own error
        """Waits until the server acknowledged everything written here so far.

        Raises:
            JazzTimeout: It did not in time; the writes stay queued.
        """
        self._check_open()
        self.writer.send()
        logs = {co_id: self._sync.unacknowledged_logs(co_id) for co_id in self._sync.unacknowledged}
        await self._waiting.flush(logs, timeout, self._why_no_answer)

    async def drain(self) -> None:
        """Waits while more than 100 kB wait to be sent: for writers that make more than the network carries.

        It returns at once without a connection: then nothing waits, and the next one starts from what the server has.
        """
        self._check_open()
        self.writer.send()
        await self._transport.outbox.room()

    # For this package

    async def uploaded(self, core: Core, timeout: float) -> None:  # noqa: ASYNC109 - raises our own error
        """Waits until the server acknowledged all that was written here to a value; see `Value.uploaded`."""
        self._check_open()
        self.writer.send()
        wanted = {str(core.co_id): self._sync.unacknowledged_logs(core.co_id)}
        if core.co_id in self._sync.unacknowledged:
            await self._waiting.flush(wanted, timeout, self._why_no_answer)

    def write_trusting(
        self, core: Core, key: str, value: Json, *, latest: int, session: SessionId | None = None
    ) -> None:
        """Sets one key of a group or an account; see `Writer.trusting`. All such writes of a node come through here."""
        self.writer.trusting(core, key, value, latest=latest, session=session)

    def write_private(
        self, core: Core, changes: Sequence[Json], *, latest: int, meta: dict[str, Json] | None = None
    ) -> None:
        """Writes to a value that a group owns; see `Writer.private`. All such writes of a node come through here."""
        self.writer.private(core, changes, latest=latest, meta=meta)

    def object_of(self, core: Core, kind: type[V]) -> V:
        """The object of a value that is here, for this package."""
        return self._objects.of(core, kind)

    # Events

    def _connected(self) -> None:
        self._sync.connect()

    def _disconnected(self) -> None:
        self._sync.disconnect()
        self._waiting.disconnected()

    def _on_whole(self, core: Core) -> None:
        account = self._objects.find(self.account_id)
        if isinstance(account, Account) and core.co_id == account.profile_id:
            self._waiting.answered()

    def _received(self, frame: str) -> None:
        self._sync.receive(frame)

    def _keep(self, disk: SqliteStore | None) -> Keeper | None:
        if disk is None:
            return None
        keeper = Keeper(disk, self.store, self.writer.send, self._sync.unacknowledged, self._sync.own_sessions)
        self.store.recall = keeper.recall
        return keeper

    def _plan_save(self, core: Core) -> None:
        if self._keeper is not None and self._end is None:
            self._keeper.mark(core)
            if not self._save_planned:
                self._save_planned = True
                asyncio.get_running_loop().call_soon(self._save)

    def _save(self) -> None:
        self._save_planned = False
        if self._keeper is not None and self._end is None:
            try:
                self._keeper.save()
            except StoreFailed as error:
                self._finish(error)

    def _plan_sweep(self) -> None:
        """Values that nobody holds go when there are twice as many as after the last time."""
        if len(self.store.cores) > self._sweep_beyond and not self._sweep_planned and self.store.guard is None:
            self._sweep_planned = True
            asyncio.get_running_loop().call_soon(self._sweep)

    def _sweep(self) -> None:
        self._sweep_planned = False
        self._save()
        held = {self.account_id, *self._objects.held(), *self._loader.under_way, *self._waiting.waited_for()}
        for core in unneeded(self.store, held | self._sync.unacknowledged.keys()):
            self.store.drop(core)
            self._sync.forget(core)
        self._sweep_beyond = max(_SWEEP_BEYOND, 2 * len(self.store.cores))

    def _changed(self, core: Core) -> None:
        self._plan_sweep()
        self._plan_save(core)
        self._waiting.changed(core)
        if self.watches.mark(core.co_id) and not self._wake_planned:
            self._wake_planned = True
            asyncio.get_running_loop().call_soon(self._wake)

    def _wake(self) -> None:
        self._wake_planned = False
        self.watches.wake()

    def _acknowledged(self, core: Core) -> None:
        self._waiting.acknowledged(core)
        self._plan_save(core)

    def _runner_ended(self, runner: asyncio.Task[None]) -> None:
        if runner.cancelled():
            return
        error = runner.exception()
        if isinstance(error, JazzError):
            self._finish(error)
        elif error is not None:
            closed = NodeClosed(f"the connection task broke: {type(error).__name__}: {error}")
            closed.__cause__ = error
            self._finish(closed)

    def _finish(self, end: JazzError) -> None:
        """Nothing will come any more: everything that waits gets to know."""
        if self._end is None:
            self._end = end
        self._sync.disconnect()
        self._waiting.end(self._end)
        self._transport.connected.set()  # whoever waits for a connection finds the node closed
        self.watches.close()
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.close(save=not isinstance(self._end, StoreFailed))

    def _check_open(self) -> None:
        if self._end is not None:
            raise self._end
