"""The interface of the node that values need; `NodeHost` implements it.

It is a protocol, so that values do not depend on connections.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from reside.jazz.events.watch import Watchable, Watches
from reside.jazz.ids import AccountId, Json, SessionId
from reside.jazz.memory.covalue import Core
from reside.jazz.memory.store import Store
from reside.jazz.operations.writer import Meta, Writer
from reside.jazz.wire.header import Header

T = TypeVar("T", bound=Watchable)


class ValueCreator(Protocol):
    """Create values; `Creator` implements it and has the documentation.

    The classes of values depend on the host, so the host does not depend on them: the caller annotates the result's
    type.
    """

    def map(self, owner: Watchable, init: Mapping[str, Json]) -> Any:
        """Create a `CoMap`."""

    def list(self, owner: Watchable, items: Iterable[Json], *, restrict_deletion: bool = False) -> Any:
        """Create a `CoList`."""

    def feed(self, owner: Watchable) -> Any:
        """Create a `CoFeed`."""

    def text(self, owner: Watchable, text: str) -> Any:
        """Create a `CoPlainText`."""

    def file(self, owner: Watchable, mime_type: str, *, name: str | None, size: int | None) -> Any:
        """Create a `FileStream` and write its description."""

    def branch(self, header: Header, kind: type[Any]) -> Any:
        """Create the branch of a header, as an object of that class."""

    def unique(self, header: Header, kind: type[Any], changes: Sequence[Json]) -> Any:
        """Return the value of a unique header, as an object of that class."""


class Host(Protocol):
    """The part of a node that its values use.

    Attributes:
        account_id: the account that reads and writes.
        store: the logs of all values.
        watches: the watchers of values.
        writer: writes transactions.
    """

    account_id: AccountId
    store: Store
    watches: Watches
    writer: Writer

    @property
    def creator(self) -> ValueCreator:
        """The creator of values."""

    def now_ms(self) -> int:
        """Return the time of the node's clock in ms since the epoch."""

    def find(self, co_id: str) -> Watchable | None:
        """Return the object of a value that was loaded or created here; None if there is none."""

    def has(self, value: Any) -> bool:
        """Return whether a value and its dependencies are completely in memory."""

    def object_of(self, core: Core, kind: type[T]) -> T:
        """Return the only object of a value in memory; raise `WrongKind` if it is of another kind."""

    async def load_as(
        self,
        co_id: str,
        kind: type[T],
        *,
        timeout: float = 30.0,  # noqa: ASYNC109 - as Node.load
        grace: float = 2.0,
    ) -> T:
        """Load a value of a class; see `NodeHost.load_as`."""

    async def load_account(self, co_id: str, *, timeout: float = 30.0) -> Watchable:  # noqa: ASYNC109 - as Node.load
        """Load an account; see `Node.load_account`."""

    async def load_header(self, co_id: str) -> None:
        """Load the header of a value, if the server has it."""

    def create_group(self, name: str | None = None) -> Any:
        """Create a group; see `Node.create_group`."""

    async def uploaded(self, core: Core, timeout: float) -> None:  # noqa: ASYNC109 - as Node.load
        """Wait for the server's acknowledgement; see `Value.uploaded`."""

    def write_trusting(
        self, core: Core, key: str, value: Json, *, latest: int, since: int = 0, session: SessionId | None = None
    ) -> None:
        """Set one key of a group or an account; see `Writer.trusting`."""

    def write_private(self, core: Core, changes: Sequence[Json], *, latest: int, meta: Meta | None = None) -> None:
        """Write to a value that a group owns; see `Writer.private`."""
