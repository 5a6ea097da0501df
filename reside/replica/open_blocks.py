"""Control blocks that are kept open: each is loaded once, and a change of a grantee's entry is reported.

Only the entries that are asked for are loaded (`ControlBlock.refresh_entry`), so the size of a block does not matter.
Most replicas serve nobody: of the blocks without loaded entries, those that were opened last are kept.
"""

from __future__ import annotations

import asyncio
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Final
from weakref import WeakValueDictionary

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from reside.replica.control_block import ControlBlock

_RECENT: Final = 8
"""Blocks without loaded entries that are kept: a pass asks for its replica's block several times."""


class OpenBlocks:
    """The open control blocks of a writer of expected grants.

    Args:
        load: opens the control block of the replica with an id; None if it does not exist.
        changed: called with the account of a grantee after a change of one of its entries that are loaded.
    """

    def __init__(self, load: Callable[[int], Awaitable[ControlBlock | None]], changed: Callable[[str], None]) -> None:
        self._load = load
        self._changed = changed
        # The subscription to an entry refers to its block.
        self._open: WeakValueDictionary[int, ControlBlock] = WeakValueDictionary()
        self._recent: deque[ControlBlock] = deque(maxlen=_RECENT)
        self._opening = asyncio.Lock()

    async def find(self, number: int) -> ControlBlock | None:
        """Return the control block of the replica with this id; None if it does not exist.

        Raises:
            NotReady: it has no readable content yet.
        """
        async with self._opening:
            block = self._open.get(number)
            if block is None:
                block = await self._load(number)
                if block is None:
                    return None
                block.on_change(partial(self._report, number))
                self._open[number] = block
                self._recent.append(block)
            return block

    def forget(self, number: int) -> None:
        """Unsubscribe from the block of a replica that was deleted."""
        block = self._open.pop(number, None)
        if block is not None:
            block.close()

    def close(self) -> None:
        """Unsubscribe from all blocks."""
        for block in list(self._open.values()):
            block.close()
        self._open.clear()
        self._recent.clear()

    def _report(self, number: int) -> None:
        block = self._open.get(number)
        for account in () if block is None else block.take_changed():
            self._changed(account)
