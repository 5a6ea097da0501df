"""The parts of a running user manager: its data, the cluster's, and who writes when.

All writes to the data and all passes happen under one lock, that of the root of the data.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reside.model.alpha_contract import MANAGE_BLOCKS
from reside.model.constants import ALPHA_CONTRACT
from reside.model.entities import Decision
from reside.model.errors import NotReady
from reside.replica.open_blocks import OpenBlocks
from reside.users.cluster import Cluster
from reside.users.contract import USER_MANAGER_CONTRACT
from reside.users.store import UserData, open_data
from reside.users.sync import needs_pass, sync_user

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable
    from contextlib import AbstractAsyncContextManager

    from reside.replica import Context, Transaction

_PASSES: Final = 32
"""Passes that one call makes side by side: a new entry takes a round trip to the sync server."""


@dataclass(frozen=True)
class UserManager:
    """A user manager that may write control blocks."""

    context: Context
    data: UserData
    cluster: Cluster

    @property
    def account(self) -> str:
        """Its own account."""
        return self.context.node.account_id

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """Open a transaction on the data."""
        return self.context.transaction(self.context.data[USER_MANAGER_CONTRACT].id)

    def decision(self, by: str, reason: str) -> Decision:
        """Return the decision of an account, made now."""
        return Decision(by=by, at=self.context.node.now_ms(), reason=reason)

    @asynccontextmanager
    async def blocks(self, changed: Callable[[str], None] = lambda _account: None) -> AsyncIterator[OpenBlocks]:
        """Open control blocks while the block of the `async with` runs; see `OpenBlocks`."""
        opened = OpenBlocks(self.cluster.control_block, changed)
        try:
            yield opened
        finally:
            opened.close()

    async def sync(self, accounts: Iterable[str]) -> None:
        """Make a pass for each of these accounts, several side by side. The caller holds the lock.

        Raises:
            NotReady: a control block can't be read yet. The other passes are cancelled.
        """
        side_by_side = asyncio.Semaphore(_PASSES)

        async def make_pass(blocks: OpenBlocks, account: str) -> None:
            async with side_by_side:
                await sync_user(self.data, blocks, account, self.account)

        async with self.blocks() as blocks:
            try:
                async with asyncio.TaskGroup() as passes:
                    for account in accounts:
                        passes.create_task(make_pass(blocks, account))
            except BaseExceptionGroup as failed:
                raise failed.exceptions[0] from None

    async def keep(self, blocks: OpenBlocks, account: str) -> None:
        """Make a pass for an account if it has something to write."""
        if await needs_pass(self.data, blocks, account, self.account):
            async with self.transaction() as tx:
                await tx.run_exclusively(lambda: sync_user(self.data, blocks, account, self.account))


async def open_manager(context: Context) -> UserManager:
    """Open the data and Alpha's.

    Raises:
        NotReady: Alpha has not granted what the user manager requires, or has not published its data.
    """
    alpha = await context.peer(ALPHA_CONTRACT)
    if await alpha.granted(MANAGE_BLOCKS) is None:
        raise NotReady(f"Alpha has not granted {MANAGE_BLOCKS} to {context.name} yet: approve it")
    data = await open_data(context, context.data[USER_MANAGER_CONTRACT])
    return UserManager(context, data, await Cluster.open(context.node, await alpha.data()))
