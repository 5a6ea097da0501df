"""Transactions: one at a time per object, on fresh content, fenced against a holder that was too slow.

    async with context.transaction(request_id) as tx:
        request = await tx.load(request_id)
        if request["status"] != "requires-approval":
            raise Conflict(...)
        tx.stage(lambda: request.set("status", "approved"))

The way: lock in etcd on the object's id → everything loaded brought up to date with the sync server → the body, which
reads and decides → the lock's fencing revision confirmed → the staged writes → ``node.flush()`` → release.

Invariants: if the body raises or the lock is lost, nothing staged is written; the lock is given back only after the
sync server has acknowledged the writes. Between the confirmation and synchronous writes there is no pause at all.
"""

from __future__ import annotations

import inspect
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from reside.jazz import CoMap, Node
    from reside.locks import Held, LockService


class Transaction:
    """A transaction in progress.

    Attributes:
        held: the lock; ``held.revision`` is the fencing token.
    """

    def __init__(self, node: Node, held: Held) -> None:
        self.held = held
        self._node = node
        self._staged: list[Callable[[], object]] = []

    async def load(self, value_id: str) -> CoMap:
        """A map, with everything that was acknowledged to earlier holders of the lock."""
        return await self._node.load_map(value_id)

    def stage(self, write: Callable[[], Awaitable[object] | object]) -> None:
        """Note a write; it runs when the body is through and the lock is confirmed, in the order of staging.

        Args:
            write: a function, or a coroutine function, without arguments.
        """
        self._staged.append(write)

    async def commit(self) -> None:
        """Confirm the lock, write, and wait for the sync server. Called at the end of the block.

        Raises:
            LockLost: nothing was written.
        """
        if not self._staged:
            return
        await self.held.check()
        staged, self._staged = self._staged, []
        for write in staged:
            result = write()
            if inspect.isawaitable(result):
                await result
        await self._node.flush()


@asynccontextmanager
async def open_transaction(node: Node, locks: LockService, object_id: str) -> AsyncIterator[Transaction]:
    """See ``Context.transaction``."""
    async with locks.lock(f"transaction/{object_id}") as held:
        await node.catch_up()
        transaction = Transaction(node, held)
        yield transaction
        await transaction.commit()
