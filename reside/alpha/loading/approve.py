"""Step 3 of a load: approve or reject a request. Everything is checked before anything is written.

A request can be approved only in the state `requires-approval`, and only at the revision that was previewed, which the
approver names; it covers everything that is granted (`reside.alpha.loading.revision`). If cluster state has changed
since the preview, the request goes back to `validating` and is previewed again: if the candidate has another revision
now, a live object that it changes has another version, the preview has expired, a chosen replica no longer implements
the contract, or another load of the replica was approved in the meantime.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reside.alpha import contracts, previews, records
from reside.alpha.candidate import candidate, updated_replica
from reside.alpha.loading import resolve, turns
from reside.alpha.loading.revision import approval_revision
from reside.model.errors import Conflict, InvalidInput
from reside.model.names import check_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from reside.alpha.records import RequestRecord
    from reside.alpha.state import Alpha
    from reside.jazz import CoMap
    from reside.model.entities import ApproveRequest, Replica, Requirement
    from reside.replica.transactions import Transaction

_BACK_TO_VALIDATION = {"preview": None, "revision": None, "approveRequest": None, "status": "validating"}


async def approve(
    alpha: Alpha,
    number: int,
    revision: str,
    choices: Mapping[str, Sequence[int]],
    name: str | None = None,
    *,
    by: str | None = None,
) -> None:
    """Approve a request at the revision that was previewed.

    Args:
        alpha: the running Alpha.
        number: id of the request.
        revision: the request's revision, as the approver saw it.
        choices: requirement key → ids of the replicas to use; requirements without a choice stay as resolved.
        name: another name for a new instance; the request is then previewed again.
        by: the account that approves; None: the seed.

    Raises:
        InvalidInput: the request does not exist, or a choice is invalid; nothing was written.
        Conflict: the request is in another state, or its preview is outdated; in this case it is previewed again.
    """
    outdated: str | None = None
    async with alpha.transaction() as tx:
        record, approved = await _open(alpha, tx, number)
        chosen = resolve.choose(approved, choices)
        outdated = await _why_outdated(alpha, record, approved, chosen, revision, name)
        if outdated is None:
            final = approved.model_copy(update={"requirements": resolve.approved(chosen)})
            await tx.run_exclusively(lambda: _approve(alpha, record, final, by))
        elif outdated:
            _stage(
                tx, record.map, _BACK_TO_VALIDATION if name is None else _BACK_TO_VALIDATION | {"requestedName": name}
            )
    if outdated is not None:
        raise Conflict(outdated or _other_revision(number, revision))


async def reject(alpha: Alpha, number: int, reason: str, *, by: str | None = None) -> None:
    """Reject a request that requires approval.

    Args:
        alpha: the running Alpha.
        number: id of the request.
        reason: why.
        by: the account that rejects.

    Raises:
        InvalidInput: the request does not exist.
        Conflict: it is in another state.
    """
    async with alpha.transaction() as tx:
        record, _ = await _open(alpha, tx, number)
        _stage(tx, record.map, _decided_by(by) | {"rejectionReason": reason, "status": "rejected"})


async def _approve(alpha: Alpha, record: RequestRecord, approved: ApproveRequest, by: str | None) -> None:
    """Take the turn of the replica, then approve: a turn of a request that is not approved has no effect."""
    await turns.take(alpha.data, turns.turn_of(approved, await _existing(alpha, record, approved)), record.map.id)
    record.map.update(_decided_by(by) | {"approveRequest": approved.document(), "status": "approved"})


def _decided_by(account: str | None) -> dict[str, str]:
    return {} if account is None else {"decidedBy": account}


async def _existing(alpha: Alpha, record: RequestRecord, approved: ApproveRequest) -> Replica | None:
    return await updated_replica(
        alpha, approved.identity, exclusive=approved.info.exclusive, replica_id=record.value.existing_replica
    )


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


async def _why_outdated(  # noqa: PLR0917 - the approval and the state it is compared with
    alpha: Alpha,
    record: RequestRecord,
    approved: ApproveRequest,
    chosen: Mapping[str, Requirement],
    revision: str,
    name: str | None,
) -> str | None:
    """Return why the preview is outdated; None if it is not.

    An empty reason means that the approver names another revision than the previewed one.
    """
    number = record.value.id
    if name is not None and name != approved.name:
        check_name(name)
        if record.value.existing_replica is not None:
            raise InvalidInput(f"load request {number} updates replica {approved.name}, which keeps its name")
        return f"load request {number} is previewed again with the name {name}: review the new preview and approve it"
    if record.value.revision != revision:
        return ""
    existing = await _existing(alpha, record, approved)
    first = await turns.holder_of(alpha.data, turns.turn_of(approved, existing))
    if first is not None:
        return (
            f"load request {first} of {approved.name} was approved and is carried out first; "
            f"load request {number} is previewed again after it: review the new preview"
        )
    stack = await candidate(alpha, approved, existing, record.value)
    found = await previews.present(alpha, number, stack)
    if found is None or approval_revision(record.value, approved, existing, stack, found) != revision:
        return (
            f"cluster state changed after load request {number} was previewed; "
            "it is previewed again: review the new preview"
        )
    for key, requirement in chosen.items():
        number_of = await contracts.contract_id(alpha.data, requirement.contract)
        serving = await records.providers_of(alpha.data, number_of) if number_of is not None else ()
        if not set(requirement.replicas) <= set(serving):
            return (
                f"a replica chosen for requirement {key!r} no longer implements its contract; "
                "the request is validated again: review the new preview"
            )
    return None


def _other_revision(number: int, revision: str) -> str:
    return f"the preview of load request {number} has another revision than {revision[:12]}: review the current preview"


def _stage(tx: Transaction, target: CoMap, members: Mapping[str, object]) -> None:
    def write() -> None:
        for key in [key for key, value in members.items() if value is None]:
            target.delete(key)
        target.update({key: value for key, value in members.items() if value is not None})

    tx.stage(write)
