"""Transactions: one at a time for each object, on current content, with fenced writes.

    async with context.transaction(request_id) as tx:
        request = await tx.load(request_id)
        if request["status"] != "requires-approval":
            raise Conflict(...)
        tx.stage(lambda: request.set("status", "approved"))

Sequence: lock in etcd on the object's id → everything loaded is brought up to date with the sync server → the body,
which reads and decides → the lock's fencing revision is confirmed → the staged writes → `node.flush()` → release.

Invariants: if the body raises or the lock is lost, nothing staged is written. The staged writes are synchronous, so
nothing runs between the confirmation and the last of them. The lock is released only after the sync server has
acknowledged the writes, also those of a procedure that raises. If it does not acknowledge them in time, the lock counts
as lost: the next holder has not seen them, so the node does not send them any more (`reside.jazz.fenced_writes`).
"""

from __future__ import annotations

import asyncio
import inspect
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

from reside.jazz import fenced_writes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable

    from reside.jazz import CoMap, Node
    from reside.locks import Held, LockService

    _Result = TypeVar("_Result")

LOCK_PREFIX = "transaction/"
"""The lock of an object's transactions is this prefix and the object's id."""
_LAST_FLUSH_S = 5.0
"""How long a transaction that is cancelled waits for the acknowledgement of what it has written."""


class Transaction:
    """A transaction in progress.

    Attributes:
        held: the lock; `held.revision` is the fencing token.
    """

    def __init__(self, node: Node, held: Held) -> None:
        self.held = held
        self._node = node
        self._staged: list[Callable[[], None]] = []

    async def load(self, value_id: str) -> CoMap:
        """Return a map, with everything that the sync server acknowledged to earlier holders of the lock."""
        return await self._node.load_map(value_id)

    def stage(self, write: Callable[[], None]) -> None:
        """Add a write that runs after the body and the confirmation of the lock, in the order of staging.

        Args:
            write: a synchronous function; what awaits goes through `run_exclusively`.
        """
        self._staged.append(write)

    async def run_exclusively(self, procedure: Callable[[], Awaitable[_Result]]) -> _Result:
        """Run a procedure that awaits, now, after the staged writes.

        Guarantees: the lock is confirmed before the procedure starts, so no two processes run procedures of one object
        at the same time; the procedure is cancelled when the lock is lost, and each of its writes is refused once the
        lease may have expired; the sync server has acknowledged its writes when this returns. It is not atomic: what it
        wrote before an error, a crash or the loss of the lock remains. So it must be idempotent: run again, it
        continues where it stopped.

        Args:
            procedure: a coroutine function.

        Raises:
            LockLost: the procedure was not started, and nothing staged was written.
        """
        await self._confirm_and_write()
        try:
            with fenced_writes(self.held.check_lease):
                return await procedure()
        finally:
            await self._flush()

    async def commit(self) -> None:
        """Confirm the lock, write what is staged, and wait for the sync server. Called at the end of the block.

        Raises:
            LockLost: nothing was written.
        """
        if self._staged:
            await self._confirm_and_write()
            await self._flush()

    async def _flush(self) -> None:
        """Wait until the sync server has acknowledged all writes, unless the lock is lost."""
        if self.held.lost.is_set():
            return
        acknowledged = False
        try:
            await self._node.flush()
            acknowledged = True
        except asyncio.CancelledError:  # the process stops; the lock is released when this returns
            if not self.held.lost.is_set():
                await self._node.flush(timeout=_LAST_FLUSH_S)
                acknowledged = True
            raise
        finally:
            if not acknowledged:
                self.held.mark_lost("its writes were not acknowledged")

    async def _confirm_and_write(self) -> None:
        await self.held.check()
        staged, self._staged = self._staged, []
        with fenced_writes(self.held.check_lease):
            self._write(staged)

    @staticmethod
    def _write(staged: Iterable[Callable[[], None]]) -> None:
        for write in staged:
            result: object = write()
            if inspect.iscoroutine(result):
                result.close()
                raise TypeError("stage takes synchronous writes only: use run_exclusively for a procedure that awaits")


@asynccontextmanager
async def open_transaction(node: Node, locks: LockService, object_id: str) -> AsyncIterator[Transaction]:
    """See `Context.transaction`."""
    async with locks.lock(f"{LOCK_PREFIX}{object_id}") as held:
        await node.catch_up()
        transaction = Transaction(node, held)
        yield transaction
        await transaction.commit()
