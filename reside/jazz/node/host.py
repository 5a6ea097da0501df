"""The part of a node that its values use."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from reside.jazz.events.watch import Watchable, Watches
from reside.jazz.groups.account import Account
from reside.jazz.groups.group import Group
from reside.jazz.groups.repair import repair_once
from reside.jazz.ids import AccountId, Json, SessionId
from reside.jazz.memory.covalue import Core
from reside.jazz.memory.store import Store
from reside.jazz.node.creator import Creator
from reside.jazz.node.identity_map import IdentityMap
from reside.jazz.operations.flusher import Flusher
from reside.jazz.operations.loader import ABSENT_GRACE_S, Loader
from reside.jazz.operations.writer import Meta, Writer
from reside.jazz.values.owned import OwnedValue
from reside.jazz.values.value import Value
from reside.jazz.wire.header import group_header

T = TypeVar("T", bound=Watchable)


class NodeHost:
    """The operations of a node that values and groups use; the only implementation of `values.host.Host`.

    Args:
        account_id: the account that reads and writes.
        store: the logs of all values.
        watches: the watchers of values.
        writer: writes transactions.
        loader: loads values.
        flusher: waits for acknowledgements.
        clock: returns ms since the epoch.
        check_open: raises an error if the node is closed.

    Attributes:
        objects: the objects that callers hold.
        creator: creates values.
    """

    def __init__(
        self,
        account_id: AccountId,
        *,
        store: Store,
        watches: Watches,
        writer: Writer,
        loader: Loader,
        flusher: Flusher,
        clock: Callable[[], int],
        check_open: Callable[[], None],
    ) -> None:
        self.account_id = account_id
        self.store = store
        self.watches = watches
        self.writer = writer
        self.objects = IdentityMap(self)
        self.creator = Creator(writer, self.objects, clock)
        self._loader = loader
        self._flusher = flusher
        self._clock = clock
        self._check_open = check_open

    def now_ms(self) -> int:
        """Return the time of the node's clock in ms since the epoch."""
        return self._clock()

    def find(self, co_id: str) -> Value | None:
        """Return a value that was loaded or created here; None if there is none. It does not ask the server."""
        core = self.objects.in_memory(co_id)
        return None if core is None else self.objects.of(core, Value)

    def has(self, value: Value) -> bool:
        """Return whether a value and its dependencies are completely in memory, so that loading it would not wait."""
        return self._loader.has(self.store.core(value.id))

    def object_of(self, core: Core, kind: type[T]) -> T:
        """Return the object of a value in memory; raise `WrongKind` if it is of another kind."""
        return self.objects.of(core, kind)

    async def load_as(
        self,
        co_id: str,
        kind: type[T],
        *,
        timeout: float = 30.0,  # noqa: ASYNC109 - as Node.load
        grace: float = ABSENT_GRACE_S,
        whole: bool = True,
    ) -> T:
        """Load a value of a class; raise `WrongKind` if it is of another. See `Node.load`.

        Args:
            co_id: the value's id.
            kind: the class of the value's object.
            timeout: in seconds.
            grace: how long to wait for a value that the server does not have, in seconds: its writer may be uploading
                it.
            whole: whether to wait for all content; if False, only the beginning may be present at first.
        """
        self._check_open()
        value = self.objects.of(await self._loader.load(co_id, timeout, grace, whole=whole), kind)
        group = value.group if isinstance(value, OwnedValue) and value.has_owner else value
        if isinstance(group, Group):
            repair_once(group)
        return value

    async def load_account(self, co_id: str, *, timeout: float = 30.0) -> Account:  # noqa: ASYNC109 - as Node.load
        """Load an account; raise `WrongKind` if the value is not one. See `Node.load`."""
        return await self.load_as(co_id, Account, timeout=timeout)

    async def load_header(self, co_id: str, timeout: float = 30.0) -> None:  # noqa: ASYNC109 - raises JazzTimeout
        """Load the header of a value, if the server has it; see `Loader.load_header`."""
        self._check_open()
        await self._loader.load_header(co_id, timeout)

    def create_group(self, name: str | None = None) -> Group:
        """Create a group with this account as its admin; see `Node.create_group`."""
        self._check_open()
        self.store.check_account()
        core = self.writer.create(group_header(self.account_id, name, self._clock()))
        group = self.objects.of(core, Group)
        group._initialise()
        return group

    async def uploaded(self, core: Core, timeout: float) -> None:  # noqa: ASYNC109 - raises our own error
        """Wait until the server acknowledged everything written here to a value; see `Value.uploaded`."""
        self._check_open()
        await self._flusher.uploaded(core, timeout)

    def write_trusting(
        self, core: Core, key: str, value: Json, *, latest: int, since: int = 0, session: SessionId | None = None
    ) -> None:
        """Set one key of a group or an account; see `Writer.trusting`. All such writes of a node use this method."""
        self.writer.trusting(core, key, value, latest=latest, since=since, session=session)

    def write_private(self, core: Core, changes: Sequence[Json], *, latest: int, meta: Meta | None = None) -> None:
        """Write to a value that a group owns; see `Writer.private`. All such writes of a node use this method."""
        self.writer.private(core, changes, latest=latest, meta=meta)
