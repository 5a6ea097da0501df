"""Flushing: waiting until the server acknowledged what was written here."""

from collections.abc import Callable

from reside.jazz.events.waiters import Waiters
from reside.jazz.memory.covalue import Core
from reside.jazz.operations.writer import Writer
from reside.jazz.sync import Sync


class Flusher:
    """Waits for the acknowledgements of one node's writes.

    Args:
        writer: writes, and may still gather what it wrote.
        sync: knows what the server acknowledged.
        waiters: tells of acknowledgements.
        why_not: says in words why no answer comes, for an error.
    """

    def __init__(self, writer: Writer, sync: Sync, waiters: Waiters, why_not: Callable[[], str]) -> None:
        self._writer = writer
        self._sync = sync
        self._waiters = waiters
        self._why_not = why_not

    async def flush(self, timeout: float) -> None:  # noqa: ASYNC109 - raises our own error
        """Wait until the server acknowledged everything written so far; see `Node.flush`.

        Raises:
            JazzTimeout: it did not in time.
        """
        self._writer.stop_batching()
        logs = {co_id: self._sync.unacknowledged_logs(co_id) for co_id in self._sync.unacknowledged}
        await self._waiters.flush(logs, timeout, self._why_not)

    async def uploaded(self, core: Core, timeout: float) -> None:  # noqa: ASYNC109 - raises our own error
        """Wait until the server acknowledged all that was written to a value; see `Value.uploaded`.

        Raises:
            JazzTimeout: it did not in time.
        """
        self._writer.stop_batching()
        logs = {str(core.co_id): self._sync.unacknowledged_logs(core.co_id)}
        if core.co_id in self._sync.unacknowledged:
            await self._waiters.flush(logs, timeout, self._why_not)
