"""Permission sync: keep `expected` in the control blocks equal to what is due (`reside.alpha.granting.due`).

Level-triggered: a pass compares the entries of one account with what is due, and writes what differs. It runs at the
start of a leader, after each change of the replica's versions, of the account's direct grants, or of one of its
entries. A replica's account gets its pass together with the other work for the replica.

Invariants: a pass touches only entries that are due or that an earlier pass has written. It leaves all others: somebody
with `rcb:manage:all` has written them.
The record of what was written contains an entry before the entry exists, so a pass that dies half-way loses none.
Writes happen under Alpha's lock, on the content that it protects.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from reside.alpha import records
from reside.alpha.granting import direct
from reside.alpha.granting.blocks import Blocks
from reside.alpha.granting.due import due_grants, due_requirements, grants_ever_expected, with_direct_grants
from reside.jazz import AccountId
from reside.model.permissions import PermissionRef, plan_expected

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from reside.alpha.state import Alpha
    from reside.jazz import CoMap
    from reside.model.entities import Replica
    from reside.model.permissions import Grant

Refs = dict[int, set[PermissionRef]]
"""Id of the granting replica → permissions."""
_REF_LENGTH: Final = 3
_MEMBER_LENGTH: Final = 4
_IS_RECORD: Final = "isRecord"


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


@dataclass(frozen=True)
class Grantee:
    """The account that a pass is for, and its replica; None for the account of a person."""

    account: str
    replica: Replica | None = None


async def sync_grants(alpha: Alpha, blocks: Blocks, grantee: Grantee) -> None:
    """Make the expected grants of an account, and the requirements of its replica, equal to what is due.

    Raises:
        NotReady: a control block can't be read yet.
    """
    if await _plan(alpha, blocks, grantee) is None:
        return
    async with alpha.transaction() as tx:
        await tx.run_exclusively(lambda: write_grants(alpha, blocks, grantee))


async def sync_account(alpha: Alpha, account: str) -> None:
    """Make one pass for an account, with control blocks of its own. The caller holds Alpha's lock."""
    number = alpha.data.replicas_by_account.get(account)
    record = await records.find_active(alpha.data, number) if isinstance(number, int) else None
    blocks = Blocks(alpha.data, lambda _account: None)
    try:
        await write_grants(alpha, blocks, Grantee(account, None if record is None else record.value))
    finally:
        blocks.close()


async def write_grants(alpha: Alpha, blocks: Blocks, grantee: Grantee) -> None:
    """Write what differs from what is due. The caller holds Alpha's lock."""
    plan = await _plan(alpha, blocks, grantee)
    if plan is None:
        return
    if plan.before or plan.after:
        record = await alpha.node.unique_map(alpha.data.replicas_group, record_of(grantee.account))
        _set_record(record, plan.before)
        for number, changed in plan.changes.items():
            await _set_expected(blocks, number, changed)
        _set_record(record, plan.after)
    own = None if grantee.replica is None else await blocks.find(grantee.replica.id)
    if own is not None and plan.requirements is not None:
        own.set_requirements({key: [AccountId(a) for a in found] for key, found in plan.requirements.items()})


async def _set_expected(blocks: Blocks, number: int, changed: Mapping[PermissionRef, Grant]) -> None:
    block = await blocks.find(number)
    if block is not None:
        for ref, grant in changed.items():
            await block.set_expected(ref, grant)


async def _plan(alpha: Alpha, blocks: Blocks, grantee: Grantee) -> Plan | None:
    """Return what differs from what is due; None if nothing does."""
    replica = grantee.replica
    granted = await direct.read_all(alpha.data, grantee.account)
    due = with_direct_grants({} if replica is None else due_grants(replica), grantee.account, granted.values())
    written = await _written(alpha, grantee)
    refs: Refs = {number: set(grants) for number, grants in due.items() if grants}
    changes = {}
    for number in sorted(due.keys() | written.keys()):
        found = await _changes(blocks, number, due.get(number, {}), written.get(number, set()))
        if found:
            changes[number] = found
    requirements = None if replica is None else await _changed_requirements(blocks, replica)
    if not changes and refs == written and requirements is None:
        return None
    return Plan(changes, _union(refs, written), refs, requirements)


async def _changed_requirements(blocks: Blocks, replica: Replica) -> dict[str, list[str]] | None:
    """Return the requirements that are due, if the replica's own block has others."""
    due = due_requirements(replica)
    own = await blocks.find(replica.id)
    differ = own is not None and {k: list(v) for k, v in own.requirements().items()} != due
    return due if differ else None


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


async def _written(alpha: Alpha, grantee: Grantee) -> Refs:
    """Read the record; for a replica of an earlier release, which has none, return all that it ever required."""
    replica, account = grantee.replica, grantee.account
    has_required = replica is not None and any(version.requirements for version in replica.versions)
    if not has_required and account not in alpha.data.direct_grants:
        return {}
    record = await alpha.node.find_unique_map(alpha.data.replicas_group.id, record_of(account))
    if record is None or not record:
        return {} if replica is None else grants_ever_expected(replica)
    return read_record(account, record.as_dict())


def read_record(account: str, members: Mapping[str, Any]) -> Refs:
    """Return the entries that a record names. Pure.

    Each is a member, so that a change writes one entry. A record of an earlier release has a list for each granting
    replica, which the first change of the record replaces.
    """
    found: Refs = {}
    for key, value in members.items():
        if isinstance(value, list) and key.isdecimal():
            found.setdefault(int(key), set()).update(_refs(account, value))
        elif isinstance(value, list) and len(value) == _MEMBER_LENGTH and isinstance(value[0], int):
            found.setdefault(value[0], set()).update(_refs(account, [value[1:]]))
    return {number: refs for number, refs in found.items() if refs}


def _refs(account: str, listed: Any) -> Iterable[PermissionRef]:
    for item in listed:
        if isinstance(item, list) and len(item) == _REF_LENGTH:
            yield PermissionRef(account, *item)


def _set_record(record: CoMap, refs: Refs) -> None:
    members: dict[str, Any] = {_IS_RECORD: True}  # a record that names nothing is not the one of an earlier release
    for number, found in refs.items():
        members |= {f"{number}:{ref.key}": [number, ref.contract, ref.name, ref.instance_id] for ref in found}
    new = {key: value for key, value in members.items() if key not in record}
    record.update(new, unset=[key for key in record if key not in members])


def _union(one: Refs, other: Refs) -> Refs:
    return {number: one.get(number, set()) | other.get(number, set()) for number in one.keys() | other.keys()}
