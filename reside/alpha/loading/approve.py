"""Step 3 of a load: approve or reject. Everything is checked before anything is written.

A request can be approved once, out of `requires-approval` alone, and only as it was previewed: the approver names the
revision. If the world moved since (the candidate rendered now has another revision, or a chosen replica is no choice
any more), the request goes back to `validating` and is previewed anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reside.alpha import contracts, records
from reside.alpha.candidate import candidate, updated_replica
from reside.alpha.loading import resolve
from reside.model.errors import Conflict, InvalidInput
from reside.model.names import check_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from reside.alpha.records import RequestRecord
    from reside.alpha.state import Alpha
    from reside.jazz import CoMap
    from reside.model.entities import ApproveRequest, Requirement
    from reside.replica.transactions import Transaction

_ANEW = {"preview": None, "approveRequest": None, "status": "validating"}


async def approve(
    alpha: Alpha,
    number: int,
    revision: str,
    choices: Mapping[str, Sequence[int]],
    name: str | None = None,
) -> None:
    """Approve a request as previewed.

    Args:
        alpha: the running Alpha.
        number: id of the request.
        revision: revision of the stack in the preview that the approver saw.
        choices: requirement key → ids of the replicas to use; what is left out stays as resolved.
        name: another name for a new instance; it leads to a new preview.

    Raises:
        InvalidInput: there is no such request, or a choice is impossible; nothing was written.
        Conflict: the request is in another state, or what it would do has changed; it is previewed anew then.
    """
    moved: str | None = None
    async with alpha.transaction() as tx:
        record, approved = await _open(alpha, tx, number)
        chosen = resolve.choose(approved, choices)
        moved = await _moved(alpha, record, approved, chosen, revision, name)
        if moved is None:
            final = approved.model_copy(update={"requirements": chosen})
            _stage(tx, record.map, {"approveRequest": final.document(), "status": "approved"})
        elif moved:
            _stage(tx, record.map, _ANEW if name is None else _ANEW | {"requestedName": name})
    if moved is not None:
        raise Conflict(moved or _other_revision(number, revision))


async def reject(alpha: Alpha, number: int, reason: str) -> None:
    """Reject a request that requires approval.

    Raises:
        InvalidInput: there is no such request.
        Conflict: it is in another state.
    """
    async with alpha.transaction() as tx:
        record, _ = await _open(alpha, tx, number)
        _stage(tx, record.map, {"rejectionReason": reason, "status": "rejected"})


async def _open(alpha: Alpha, tx: Transaction, number: int) -> tuple[RequestRecord, ApproveRequest]:
    record = await records.find_request(alpha.data, number)
    await tx.load(record.map.id)
    record = await records.read_request(alpha.data, record.map.id)
    request = record.value
    if request.status != "requires-approval" or request.approve_request is None:
        why = request.error_message or request.rejection_reason
        raise Conflict(
            f"load request {number} is {request.status}{f' ({why})' if why else ''}: "
            "only one that requires approval can be approved or rejected"
        )
    return record, request.approve_request


async def _moved(  # noqa: PLR0917 - what the approver said stands beside what Alpha knows
    alpha: Alpha,
    record: RequestRecord,
    approved: ApproveRequest,
    chosen: Mapping[str, Requirement],
    revision: str,
    name: str | None,
) -> str | None:
    """Why the request must be previewed anew; empty: only the named revision is not the previewed one; None: go on."""
    number = record.value.id
    if name is not None and name != approved.name:
        check_name(name)
        if record.value.existing_replica is not None:
            raise InvalidInput(f"load request {number} updates replica {approved.name}, which keeps its name")
        return f"load request {number} is previewed anew under the name {name}: look again and approve that"
    if (record.value.preview or {}).get("revision") != revision:
        return ""
    existing = await updated_replica(
        alpha, approved.identity, exclusive=approved.info.exclusive, replica_id=record.value.existing_replica
    )
    stack = await candidate(alpha, approved, existing, record.value.image)
    if stack.revision != revision:
        return f"the world moved since load request {number} was previewed; it is previewed anew: look again"
    for key, requirement in chosen.items():
        number_of = await contracts.contract_id(alpha.data, requirement.contract)
        serving = await records.providers_of(alpha.data, number_of) if number_of is not None else ()
        if not set(requirement.replicas) <= set(serving):
            return (
                f"a replica chosen for requirement {key!r} serves it no more; the request is resolved anew: look again"
            )
    return None


def _other_revision(number: int, revision: str) -> str:
    return f"load request {number} was previewed as another revision than {revision[:12]}: look at its present preview"


def _stage(tx: Transaction, target: CoMap, members: Mapping[str, object]) -> None:
    def write() -> None:
        for key in [key for key, value in members.items() if value is None]:
            target.delete(key)
        target.update({key: value for key, value in members.items() if value is not None})

    tx.stage(write)
