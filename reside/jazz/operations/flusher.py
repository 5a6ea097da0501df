"""Flush: wait until the server has acknowledged what this node wrote."""

from reside.jazz.events.waiters import Waiters
from reside.jazz.memory.covalue import Core
from reside.jazz.operations.writer import Writer
from reside.jazz.sync import Exchange, Servers


class Flusher:
    """Waits for the acknowledgement of one node's writes.

    Args:
        writer: may still be batching writes.
        exchange: has the acknowledgements.
        servers: the connections.
        waiters: notifies of acknowledgements.
    """

    def __init__(self, writer: Writer, exchange: Exchange, servers: Servers, waiters: Waiters) -> None:
        self._writer = writer
        self._exchange = exchange
        self._servers = servers
        self._waiters = waiters

    async def flush(self, timeout: float) -> None:  # noqa: ASYNC109 - raises JazzTimeout
        """Wait until the server has acknowledged everything written so far; see `Node.flush`.

        Raises:
            JazzTimeout: it did not do so in time.
        """
        self._writer.stop_batching()
        logs = {co_id: self._exchange.unacknowledged_logs(co_id) for co_id in self._exchange.unacknowledged}
        await self._waiters.flush(logs, timeout, lambda: self._servers.delay_reason)

    async def uploaded(self, core: Core, timeout: float) -> None:  # noqa: ASYNC109 - raises JazzTimeout
        """Wait until the server has acknowledged everything written to a value; see `Value.uploaded`.

        Raises:
            JazzTimeout: it did not do so in time.
        """
        self._writer.stop_batching()
        logs = {str(core.co_id): self._exchange.unacknowledged_logs(core.co_id)}
        if core.co_id in self._exchange.unacknowledged:
            await self._waiters.flush(logs, timeout, lambda: self._servers.delay_reason)
