"""Flush: wait until the server has acknowledged what this node wrote."""

from collections.abc import Callable

from reside.jazz.events.waiters import Waiters
from reside.jazz.memory.covalue import Core
from reside.jazz.operations.writer import Writer
from reside.jazz.sync import Sync


class Flusher:
    """Waits for the acknowledgement of one node's writes.

    Args:
        writer: may still be batching writes.
        sync: has the acknowledgements.
        waiters: notifies of acknowledgements.
        delay_reason: returns the reason for a delay, for an error.
    """

    def __init__(self, writer: Writer, sync: Sync, waiters: Waiters, delay_reason: Callable[[], str]) -> None:
        self._writer = writer
        self._sync = sync
        self._waiters = waiters
        self._delay_reason = delay_reason

    async def flush(self, timeout: float) -> None:  # noqa: ASYNC109 - raises JazzTimeout
        """Wait until the server has acknowledged everything written so far; see `Node.flush`.

        Raises:
            JazzTimeout: it did not do so in time.
        """
        self._writer.stop_batching()
        logs = {co_id: self._sync.unacknowledged_logs(co_id) for co_id in self._sync.unacknowledged}
        await self._waiters.flush(logs, timeout, self._delay_reason)

    async def uploaded(self, core: Core, timeout: float) -> None:  # noqa: ASYNC109 - raises JazzTimeout
        """Wait until the server has acknowledged everything written to a value; see `Value.uploaded`.

        Raises:
            JazzTimeout: it did not do so in time.
        """
        self._writer.stop_batching()
        logs = {str(core.co_id): self._sync.unacknowledged_logs(core.co_id)}
        if core.co_id in self._sync.unacknowledged:
            await self._waiters.flush(logs, timeout, self._delay_reason)
