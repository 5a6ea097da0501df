"""The control blocks that a leader has open."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from reside.alpha import lookups
from reside.model import lookup
from reside.replica import ControlBlock
from reside.replica.open_blocks import OpenBlocks

if TYPE_CHECKING:
    from collections.abc import Callable

    from reside.alpha.data import AlphaData


class Blocks(OpenBlocks):
    """The open control blocks of one term.

    Args:
        data: Alpha's data.
        changed: called with the account of a grantee after a change of one of its entries that are loaded.
    """

    def __init__(self, data: AlphaData, changed: Callable[[str], None]) -> None:
        super().__init__(partial(_load, data), changed)


async def _load(data: AlphaData, number: int) -> ControlBlock | None:
    target = await lookups.find(data, lookup.rcb_by_id(number))
    return None if target is None else await ControlBlock.open(data.node, target)
