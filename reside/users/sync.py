"""Passes: keep `expected` in the control blocks equal to what is due to users.

Level-triggered: a pass compares the entries of one user with what is due, and writes what differs. It runs for every
user at the start, and for one user after each change of what is given to it or of one of its entries.

Alpha and people with `rcb:manage:all` write the same control blocks. An entry that somebody else has granted stays as
it is: a direct grant of Alpha keeps its params, and ends only there. If it ends although the same permission is due
here, the pass grants it. So no two writers change an entry by turns.

Invariants: a pass touches only entries that are due or that an earlier pass has written. The record of what was written
contains an entry before the entry exists, so a pass that dies half-way loses none. The caller holds the lock of the
user manager's data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reside.model.permissions import Grant, PermissionRef, plan_expected
from reside.users.people import due

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from reside.replica.control_block import ControlBlock
    from reside.replica.open_blocks import OpenBlocks
    from reside.users.store import Refs, UserData

Changes = dict[int, dict[PermissionRef, Grant]]
"""Id of the granting replica → what to write."""


async def needs_pass(data: UserData, blocks: OpenBlocks, account: str, me: str) -> bool:
    """Return whether a pass would write anything; `me` is the user manager's account."""
    changes, refs = await _plan(data, blocks, account, me)
    return bool(changes) or refs != data.written_for(account)


async def sync_user(data: UserData, blocks: OpenBlocks, account: str, me: str) -> None:
    """Make one pass for the account of a user or of a former one.

    Raises:
        NotReady: a control block can't be read yet.
    """
    changes, refs = await _plan(data, blocks, account, me)
    if changes:
        data.set_written(account, _union(refs, data.written_for(account)))
    for number, changed in changes.items():
        block = await blocks.find(number)
        if block is not None:
            for ref, grant in changed.items():
                await block.set_expected(ref, grant)
    data.set_written(account, refs)


async def _plan(data: UserData, blocks: OpenBlocks, account: str, me: str) -> tuple[Changes, Refs]:
    """Return what to write, and the record of entries after that."""
    user = data.find_user(account)
    wanted = due(user, {} if user is None else data.sets_of(user))
    written = data.written_for(account)
    changes: Changes = {}
    for number in sorted(wanted.keys() | written.keys()):
        block = await blocks.find(number)
        if block is not None:  # else the replica was deleted, with its control block
            changed = await _changes(block, wanted.get(number, {}), written.get(number, set()), me)
            changes |= {number: changed} if changed else {}
    return changes, {number: set(grants) for number, grants in wanted.items()}


async def _changes(
    block: ControlBlock, wanted: Mapping[PermissionRef, Grant], written: Iterable[PermissionRef], me: str
) -> dict[PermissionRef, Grant]:
    both = {*wanted, *written}
    for ref in both:
        await block.refresh_entry(ref.key)
    entries = {ref: entry for ref in both if (entry := block.find(ref)) is not None}
    mine = {ref for ref in both if ref not in entries or not entries[ref].expected.granted or _wrote(block, ref, me)}
    return plan_expected(
        {ref: grant for ref, grant in wanted.items() if ref in mine},
        mine,
        [entries[ref] for ref in mine & entries.keys()],
    )


def _wrote(block: ControlBlock, ref: PermissionRef, me: str) -> bool:
    return block.expected_by(ref) == me


def _union(one: Refs, other: Refs) -> Refs:
    return {number: one.get(number, set()) | other.get(number, set()) for number in one.keys() | other.keys()}
