"""What a value needs of the node that holds it: `Node` is the one that there is.

A protocol, so that values know nothing of connections.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from reside.jazz.events.watch import Watchable, Watches
from reside.jazz.ids import AccountId, Json, SessionId
from reside.jazz.memory.covalue import Core
from reside.jazz.memory.store import Store
from reside.jazz.operations.writer import Writer
from reside.jazz.wire.header import Header

T = TypeVar("T", bound=Watchable)


class ValueCreator(Protocol):
    """What makes new values: `Creator`, which says more of each.

    Their classes know their host, so the host does not know them: who asks for a value says what it is.
    """

    def map(self, owner: Watchable, init: Mapping[str, Json]) -> Any:
        """A new `CoMap`."""

    def list(self, owner: Watchable, items: Iterable[Json], *, restrict_deletion: bool = False) -> Any:
        """A new `CoList`."""

    def feed(self, owner: Watchable) -> Any:
        """A new `CoFeed`."""

    def text(self, owner: Watchable, text: str) -> Any:
        """A new `CoPlainText`."""

    def file(self, owner: Watchable, mime_type: str, *, name: str | None, size: int | None) -> Any:
        """A new `FileStream` that is started."""

    def unique(self, header: Header, kind: type[Any], changes: Sequence[Json]) -> Any:
        """The value of a unique header, of that class."""


class Host(Protocol):
    """A node as its values see it.

    Attributes:
        account_id: Who reads and writes.
        store: All values' logs.
        watches: The watchers of values.
        writer: What writes.
    """

    account_id: AccountId
    store: Store
    watches: Watches
    writer: Writer

    @property
    def creator(self) -> ValueCreator:
        """What makes new values."""

    def now_ms(self) -> int:
        """The node's clock: ms since the epoch."""

    def find(self, co_id: str) -> Watchable | None:
        """The object of a value that was loaded or made here; None if it was not."""

    def has(self, value: Any) -> bool:
        """Whether all of a value is here, and all that it needs."""

    def object_of(self, core: Core, kind: type[T]) -> T:
        """The one object of a value that is here; `WrongKind` if it is of another kind."""

    async def load_as(
        self,
        co_id: str,
        kind: type[T],
        *,
        timeout: float = 30.0,  # noqa: ASYNC109 - as Node.load
        grace: float = 2.0,
    ) -> T:
        """Loads a value of a kind; see `Node.load_as`."""

    async def load_account(self, co_id: str, *, timeout: float = 30.0) -> Watchable:  # noqa: ASYNC109 - as Node.load
        """Loads an account; see `Node.load_account`."""

    def create_group(self, name: str | None = None) -> Any:
        """A new group; see `Node.create_group`."""

    async def uploaded(self, core: Core, timeout: float) -> None:  # noqa: ASYNC109 - as Node.load
        """Waits for the server's acknowledgement; see `Value.uploaded`."""

    def write_trusting(
        self, core: Core, key: str, value: Json, *, latest: int, session: SessionId | None = None
    ) -> None:
        """Sets one key of a group or an account; see `Writer.trusting`."""

    def write_private(
        self, core: Core, changes: Sequence[Json], *, latest: int, meta: dict[str, Json] | None = None
    ) -> None:
        """Writes to a value that a group owns; see `Writer.private`."""
