"""The control blocks that a leader has open: each is loaded once, and a change of a grantee's entry is reported.

Only the entries that are asked for are loaded (`ControlBlock.refresh_entry`), so the size of a block does not matter.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from reside.alpha import lookups
from reside.model import lookup
from reside.replica import ControlBlock

if TYPE_CHECKING:
    from collections.abc import Callable

    from reside.alpha.data import AlphaData


class Blocks:
    """The open control blocks of one term.

    Args:
        data: Alpha's data.
        changed: called with the account of a grantee after a change of one of its entries that are loaded.
    """

    def __init__(self, data: AlphaData, changed: Callable[[str], None]) -> None:
        self._data = data
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
                target = await lookups.find(self._data, lookup.rcb_by_id(number))
                if target is None:
                    return None
                block = await ControlBlock.open(self._data.node, target)
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
