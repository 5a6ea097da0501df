"""Control blocks that are kept open: each is loaded once, and a change of a grantee's entry is reported.

Only the entries that are asked for are loaded (`ControlBlock.refresh_entry`), so the size of a block does not matter.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from reside.replica.control_block import ControlBlock


class OpenBlocks:
    """The open control blocks of a writer of expected grants.

    Args:
        load: opens the control block of the replica with an id; None if it does not exist.
        changed: called with the account of a grantee after a change of one of its entries that are loaded.
    """

    def __init__(self, load: Callable[[int], Awaitable[ControlBlock | None]], changed: Callable[[str], None]) -> None:
        self._load = load
        self._changed = changed
        self._open: dict[int, ControlBlock] = {}
        self._opening = asyncio.Lock()

    async def find(self, number: int) -> ControlBlock | None:
        """Return the control block of the replica with this id; None if it does not exist.

        Raises:
            NotReady: it has no readable content yet.
        """
        async with self._opening:
            if number not in self._open:
                block = await self._load(number)
                if block is None:
                    return None
                block.on_change(partial(self._report, block))
                self._open[number] = block
            return self._open[number]

    def forget(self, number: int) -> None:
        """Unsubscribe from the block of a replica that was deleted."""
        block = self._open.pop(number, None)
        if block is not None:
            block.close()

    def close(self) -> None:
        """Unsubscribe from all blocks."""
        for block in self._open.values():
            block.close()
        self._open.clear()

    def _report(self, block: ControlBlock) -> None:
        for account in block.take_changed_accounts():
            self._changed(account)
