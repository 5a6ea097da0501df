"""The sync servers of a node: a connection to each of them, kept until the node is closed."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from reside.jazz.errors import JazzError, JazzUnavailable
from reside.jazz.memory.covalue import Core
from reside.jazz.sync.connection import Connection
from reside.jazz.sync.exchange import Exchange


class Servers:
    """The connections of one node.

    Args:
        urls: the servers, at least one.
        exchange: what the node exchanges with all servers.
        on_queued: called when a message waits for the next `flush_due`.
        proven: returns the address that proves the account to a server; None: addresses are used as they are.

    Attributes:
        connections: one for each server.
    """

    def __init__(
        self,
        urls: Sequence[str],
        exchange: Exchange,
        *,
        on_queued: Callable[[], None],
        proven: Callable[[str], str] | None = None,
    ) -> None:
        self._any_connected = asyncio.Event()
        self._open = 0
        self._opened = asyncio.Event()
        self._end: JazzError | None = None
        self.connections = [
            Connection(
                url,
                exchange,
                on_change=self._changed,
                on_queued=on_queued,
                address=None if proven is None else partial(proven, url),
            )
            for url in urls
        ]

    @property
    def connected(self) -> bool:
        """Whether there is a connection to a server."""
        return any(connection.sync.connected for connection in self.connections)

    @property
    def buffered(self) -> int:
        """The number of characters queued to be sent, to all servers."""
        return sum(connection.transport.outbox.buffered for connection in self.connections)

    @property
    def delay_reason(self) -> str:
        """Why an answer of the servers may be late, for an error."""
        lost = [connection.transport.server for connection in self.connections if not connection.sync.connected]
        if len(self.connections) == 1:
            return "there is no connection" if lost else "the server did not answer"
        return f"there is no connection to {', '.join(lost)}" if lost else "a server did not answer"

    async def run(self) -> None:
        """Connect to all servers and reconnect until cancelled.

        Raises:
            JazzUnavailable: a URL is malformed; a retry can't help.
        """
        try:
            async with asyncio.TaskGroup() as tasks:
                for connection in self.connections:
                    tasks.create_task(connection.transport.run())
        except BaseExceptionGroup as group:
            raise group.exceptions[0] from None

    async def wait_connected(self, timeout: float) -> None:  # noqa: ASYNC109 - raises an error with the reason
        """Wait for a connection to one of the servers.

        Raises:
            JazzUnavailable: there was none in time; the message has the last errors.
            JazzError: the node ended.
        """
        try:
            async with asyncio.timeout(timeout):
                await self.until_connected()
        except TimeoutError:
            raise JazzUnavailable(self._failure(timeout)) from None

    async def until_connected(self) -> None:
        """Wait for a connection to one of the servers, without a deadline.

        Raises:
            JazzError: the node ended.
        """
        await self._any_connected.wait()
        if self._end is not None:
            raise self._end

    async def until_reconnected(self) -> None:
        """Wait until a new connection to one of the servers is opened.

        Raises:
            JazzError: the node ended.
        """
        await self._opened.wait()
        if self._end is not None:
            raise self._end

    async def round_trip(self, small: Core) -> bool:
        """Request a small value from every connected server, and wait for their answers.

        Returns:
            whether all of them answered; False if a connection ended first, or there is none.
        """
        asked = [connection for connection in self.connections if connection.sync.connected]
        answers = await asyncio.gather(*(connection.round_trip(small) for connection in asked))
        return bool(answers) and all(answers)

    def flush_due(self) -> None:
        """Send all queues that contain more than acknowledgements."""
        for connection in self.connections:
            connection.transport.flush_due()

    async def room(self) -> None:
        """Wait until no queue is full."""
        for connection in self.connections:
            await connection.transport.outbox.room()

    def end(self, error: JazzError) -> None:
        """End all waits with an error, because the node ended."""
        self._end = error
        for connection in self.connections:
            connection.end(error)
        self._any_connected.set()
        self._opened.set()

    def _failure(self, timeout: float) -> str:
        transports = [connection.transport for connection in self.connections]
        if len(transports) == 1:
            (only,) = transports
            return f"no connection to the sync server {only.server} within {timeout:g} s ({only.last_error})"
        failures = ", ".join(f"{transport.server} ({transport.last_error})" for transport in transports)
        return f"no connection to any of the sync servers within {timeout:g} s: {failures}"

    def _changed(self) -> None:
        before, self._open = self._open, sum(connection.sync.connected for connection in self.connections)
        if self._open > before:
            self._opened.set()
            self._opened = asyncio.Event()
        if self._open:
            self._any_connected.set()
        else:
            self._any_connected.clear()
