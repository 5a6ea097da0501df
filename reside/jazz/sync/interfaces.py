"""What the sync protocol needs of its surroundings: of the connection, and of the node."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from reside.jazz.memory.covalue import Core
from reside.jazz.sync.receiver import BatchReceiver

if TYPE_CHECKING:
    from reside.jazz.sync.protocol import Sync


class Send(Protocol):
    """Sends a message, unless `may_send` returns False when it would be written to the network."""

    def __call__(self, text: str, may_send: Callable[[], bool] | None = None, /) -> None:
        """Send a message."""


class SyncHost(Protocol):
    """What the protocol needs of its node; the states of all servers of a node share it.

    Attributes:
        own_sessions: the sessions that this node writes.
        receiver: verifies batches and adds them to the logs.
    """

    own_sessions: set[str]
    receiver: BatchReceiver

    def sign(self, core: Core) -> None:
        """Sign what this node wrote to a value."""

    def may_send(self, core: Core) -> bool:
        """Return whether what was written here to a value may be sent."""

    def check_of(self, core: Core) -> Callable[[], bool] | None:
        """Return a function that calls `may_send` for a value; None if no fence applies to what was written to it."""

    def confirmed(self, core: Core) -> None:
        """Note that a server confirmed more of a value."""

    def lacks(self, core: Core) -> None:
        """Note that a server does not have a value whose header is missing here."""

    def arrived(self, core: Core, sync: "Sync") -> None:
        """Note that content of a value arrived from a server."""
