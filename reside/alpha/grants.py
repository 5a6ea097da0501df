"""Permission sync: keep `expected` in the control blocks equal to what is due to a replica (`reside.alpha.due`).

Level-triggered: a pass compares the entries of one account with what is due, and writes what differs. It runs with each
pass over the replica: at the start of a leader, and after each change of its versions or of one of its entries.

Invariants: a pass touches only entries that are due or that an earlier pass has written; the others belong to people.
The record of what was written contains an entry before the entry exists, so a pass that dies half-way loses none.
Writes happen under Alpha's lock, on the content that it protects.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from reside.alpha.due import due_grants, due_requirements, grants_ever_expected
from reside.jazz import AccountId
from reside.model.permissions import PermissionRef, plan_expected

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from reside.alpha.blocks import Blocks
    from reside.alpha.state import Alpha
    from reside.jazz import CoMap
    from reside.model.entities import Replica
    from reside.model.permissions import Grant

Refs = dict[int, set[PermissionRef]]
"""Id of the granting replica → permissions."""
_REF_LENGTH: Final = 3


@dataclass(frozen=True)
class Plan:
    """What a pass has to write.

    Attributes:
        changes: id of the granting replica → the expected grants that differ.
        before: what the record must contain before the changes.
        after: what it contains after them.
        requirements: the replicas that serve each requirement, if the replica's own block differs.
    """

    changes: Mapping[int, Mapping[PermissionRef, Grant]]
    before: Refs
    after: Refs
    requirements: Mapping[str, list[str]] | None


async def sync_grants(alpha: Alpha, blocks: Blocks, replica: Replica) -> None:
    """Make the expected grants of a replica's account, and its requirements, equal to what is due.

    Raises:
        NotReady: a control block can't be read yet.
    """
    if await _plan(alpha, blocks, replica) is None:
        return
    async with alpha.transaction() as tx:
        await tx.run_exclusively(lambda: _write(alpha, blocks, replica))


async def _write(alpha: Alpha, blocks: Blocks, replica: Replica) -> None:
    plan = await _plan(alpha, blocks, replica)
    if plan is None:
        return
    if plan.before or plan.after:
        record = await alpha.node.unique_map(alpha.data.replicas_group, record_of(replica.account))
        _set_record(record, plan.before)
        for number, changed in plan.changes.items():
            await _set_expected(blocks, number, changed)
        _set_record(record, plan.after)
    own = await blocks.find(replica.id)
    if own is not None and plan.requirements is not None:
        own.set_requirements({key: [AccountId(a) for a in found] for key, found in plan.requirements.items()})


async def _set_expected(blocks: Blocks, number: int, changed: Mapping[PermissionRef, Grant]) -> None:
    block = await blocks.find(number)
    if block is not None:
        for ref, grant in changed.items():
            await block.set_expected(ref, grant)


async def _plan(alpha: Alpha, blocks: Blocks, replica: Replica) -> Plan | None:
    """Return what differs from what is due; None if nothing does."""
    due = due_grants(replica)
    written = await _written(alpha, replica)
    refs: Refs = {number: set(grants) for number, grants in due.items() if grants}
    changes = {}
    for number in sorted(due.keys() | written.keys()):
        found = await _changes(blocks, number, due.get(number, {}), written.get(number, set()))
        if found:
            changes[number] = found
    requirements = due_requirements(replica)
    own = await blocks.find(replica.id)
    differ = own is not None and {k: list(v) for k, v in own.requirements().items()} != requirements
    if not changes and refs == written and not differ:
        return None
    return Plan(changes, _union(refs, written), refs, requirements if differ else None)


async def _changes(
    blocks: Blocks, number: int, due: Mapping[PermissionRef, Grant], written: Iterable[PermissionRef]
) -> dict[PermissionRef, Grant]:
    """Return what to write as `expected` into the block of the replica with this id, which may not exist any more."""
    block = await blocks.find(number)
    if block is None:
        return {}
    mine = set(due) | set(written)
    for ref in mine:
        await block.refresh_entry(ref.key)
    entries = [entry for ref in mine if (entry := block.find(ref)) is not None]
    return plan_expected(due, mine, entries)


def record_of(account: str) -> str:
    """Return the name of the record of the entries that passes for an account have written."""
    return f"expected-grants.of-account.{account}"


async def _written(alpha: Alpha, replica: Replica) -> Refs:
    """Read the record; for a replica of an earlier release, which has none, return all that it ever required."""
    if not any(version.requirements for version in replica.versions):
        return {}
    record = await alpha.node.find_unique_map(alpha.data.replicas_group.id, record_of(replica.account))
    if record is None or not record:
        return grants_ever_expected(replica)
    return {int(number): set(_refs(replica.account, listed)) for number, listed in record.items() if listed}


def _refs(account: str, listed: Any) -> Iterable[PermissionRef]:
    for item in listed:
        if isinstance(item, list) and len(item) == _REF_LENGTH:
            yield PermissionRef(account, *item)


def _set_record(record: CoMap, refs: Refs) -> None:
    members = {str(number): _listed(found) for number, found in refs.items()}
    members |= {number: [] for number in record if number not in members}
    record.update({number: listed for number, listed in members.items() if record.get(number) != listed})


def _listed(refs: Iterable[PermissionRef]) -> list[list[str | None]]:
    return [[ref.contract, ref.name, ref.instance_id] for ref in sorted(refs, key=lambda ref: ref.key)]


def _union(one: Refs, other: Refs) -> Refs:
    return {number: one.get(number, set()) | other.get(number, set()) for number in one.keys() | other.keys()}
