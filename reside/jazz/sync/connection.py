"""One sync server of a node: the connection, the state of the protocol on it, and the round trips in flight."""

import asyncio
from collections import deque
from collections.abc import Callable

from reside.jazz.errors import JazzError
from reside.jazz.memory.covalue import Core
from reside.jazz.sync.exchange import Exchange
from reside.jazz.sync.transport import Transport


class Connection:
    """The connection of a node to one of its servers.

    Args:
        url: `ws://…` or `wss://…`.
        exchange: what the node exchanges with all servers.
        on_change: called after a connection was opened, and after it has ended.
        on_queued: called when a message waits for the next `Transport.flush_due`.
        address: returns the URL for a new connection, with parameters that may be secret; None: `url` itself.

    Attributes:
        transport: the connection.
        sync: the state of the protocol.
    """

    def __init__(
        self,
        url: str,
        exchange: Exchange,
        *,
        on_change: Callable[[], None],
        on_queued: Callable[[], None],
        address: Callable[[], str] | None,
    ) -> None:
        self._exchange = exchange
        self._on_change = on_change
        self._round_trips: dict[str, deque[asyncio.Future[bool]]] = {}
        self.transport = Transport(
            url,
            on_connect=self._connected,
            on_disconnect=self._disconnected,
            on_frame=self._received,
            on_queued=on_queued,
            address=address,
        )
        self.sync = exchange.add(self.transport.send, self.transport.send_later, on_full_load=self._answered)

    def round_trip(self, small: Core) -> asyncio.Future[bool]:
        """Request a small value; the future is True once it arrives, False if the connection ends first."""
        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._round_trips.setdefault(small.co_id, deque()).append(answer)
        self.sync.request_full(small)
        return answer

    def end(self, error: JazzError) -> None:
        """End all round trips with an error, because the node is closed."""
        self.sync.disconnect()
        for answer in self._take_round_trips():
            answer.set_exception(error)

    def _connected(self) -> None:
        self.sync.connect()
        self._on_change()

    def _disconnected(self) -> None:
        self.sync.disconnect()
        self._exchange.disconnected(self.sync)
        for answer in self._take_round_trips():
            answer.set_result(False)
        self._on_change()

    def _received(self, frame: str) -> None:
        self.sync.receive(frame)
        self._exchange.ask_for_skipped()

    def _answered(self, core: Core) -> None:
        """Complete the oldest round trip of a value: answers arrive in the order of the requests."""
        waiting = self._round_trips.get(core.co_id)
        if waiting is None:
            return
        answer = waiting.popleft()
        if not waiting:
            del self._round_trips[core.co_id]
        if not answer.done():
            answer.set_result(True)

    def _take_round_trips(self) -> list[asyncio.Future[bool]]:
        waiting = [answer for answers in self._round_trips.values() for answer in answers if not answer.done()]
        self._round_trips.clear()
        return waiting
