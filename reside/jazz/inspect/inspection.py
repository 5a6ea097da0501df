"""Inspection of one value through a node."""

from collections.abc import Iterator
from typing import Any, Final

from reside.jazz.errors import ValueDeleted
from reside.jazz.groups.account import Account
from reside.jazz.groups.group import Group
from reside.jazz.ids import Json
from reside.jazz.inspect.report import Outcome, OwnerReport, Report, TransactionReport
from reside.jazz.memory.covalue import Core
from reside.jazz.node import Node
from reside.jazz.rules.group_state import GroupState
from reside.jazz.rules.inert import decode_trusting
from reside.jazz.rules.permissions import refusal_of_write
from reside.jazz.values.cofeed import CoFeed
from reside.jazz.values.colist import CoList
from reside.jazz.values.comap import CoMap
from reside.jazz.values.owned import OwnedValue
from reside.jazz.values.stream import FileStream
from reside.jazz.values.text import CoPlainText
from reside.jazz.values.value import Value
from reside.jazz.wire.dates import date_of
from reside.jazz.wire.deep_json import map_scalars
from reside.jazz.wire.session import Transaction

_SECRET_STARTS: Final = ("keySecret_z", "sealed_U", "sealedForGroup_U", "encrypted_U")


async def inspect_value(node: Node, co_id: str, *, timeout: float = 30.0) -> Report:  # noqa: ASYNC109 - as Node.load
    """Load a value and return a report of its header, owner, content and history.

    Raises:
        ValueNotFound: the server does not have it.
        JazzTimeout: it was not loaded in time.
    """
    host = node._host
    try:
        value = await node.load(co_id, timeout=timeout)
    except ValueDeleted:
        value = host.object_of(host.store.core(co_id), Value)
    value._refresh()
    core = host.store.core(value.id)
    group = value if isinstance(value, Group) else _owner(value)
    transactions = _group_transactions(value) if isinstance(value, Group) else _value_transactions(value, core, group)
    return Report(
        value.id,
        value.kind,
        None if core.header is None else core.header.raw,
        None if group is None else _owner_report(group),
        _content(value),
        tuple(sorted(transactions, key=lambda report: (report.made_at, report.session, report.index))),
        tuple(_notes(core)),
    )


def _owner(value: Value) -> Group | None:
    return value.group if isinstance(value, OwnedValue) and value.has_owner else None


def _owner_report(group: Group) -> OwnerReport:
    parents = {str(parent): mapping for parent, mapping in group.parents().items()}
    return OwnerReport(group.id, group.name, group.kind, group.my_role, group.members(), parents)


def _group_transactions(group: Group) -> Iterator[TransactionReport]:
    state = group._state
    for verdict in state.verdicts:
        outcome: Outcome = "valid" if verdict.refusal is None else "invalid"
        if not verdict.transaction.is_private:
            decode_trusting(verdict.transaction)  # a group does not keep what it has validated
        yield _report(verdict.transaction, state, outcome, verdict.refusal)


def _value_transactions(value: Value, core: Core, group: Group | None) -> Iterator[TransactionReport]:
    reasons = {(session, index): reason for session, index, reason in _refusals(value)}
    state = None if group is None else group._state
    for item in core.transactions:
        reason = reasons.get((item.session, item.index))
        allowed = state is None or refusal_of_write(state, item) is None
        unreadable = reason is not None and allowed and item.changes is None
        outcome: Outcome = "valid" if reason is None else "unreadable" if unreadable else "invalid"
        yield _report(item, state, outcome, reason)


def _refusals(value: Value) -> list[tuple[Any, int, str | None]]:
    return list(value.refusals()) if isinstance(value, OwnedValue) else []


def _report(item: Transaction, state: GroupState | None, outcome: Outcome, reason: str | None) -> TransactionReport:
    return TransactionReport(
        item.session,
        item.index,
        item.author,
        None if state is None else state.role_of(item.author, item.made_at),
        date_of(item.made_at).isoformat(timespec="milliseconds"),
        "private" if item.is_private else "trusting",
        outcome,
        reason,
        _masked(item.changes),
        item.meta_value,
    )


def _masked(raw: Json) -> Json:
    """Return JSON with everything that reveals keys masked."""
    return map_scalars(raw, _masked_scalar)


def _masked_scalar(raw: Json) -> Json:
    if isinstance(raw, str) and raw.startswith(_SECRET_STARTS):
        return f"({raw.partition('_')[0]}, hidden)"
    return raw


def _content(value: Value) -> Json:  # noqa: PLR0911 - one return a kind
    if isinstance(value, Account):
        return {"name": value.name, "profile": value.profile_id, "agent": value.agent_id}
    if isinstance(value, Group):
        return {"members": value.members(), "parents": {**value.parents()}, "readKey": value._state.get("readKey")}
    if isinstance(value, CoMap):
        return value.as_dict()
    if isinstance(value, CoPlainText):
        return str(value)
    if isinstance(value, CoList):
        return value.as_list()
    if isinstance(value, FileStream):
        info = value.info
        return {**(info._asdict() if info is not None else {}), "received": value.received, "finished": value.finished}
    if isinstance(value, CoFeed):
        return [{"by": entry.by, "at": entry.at, "value": entry.value} for entry in value.entries()]
    return None


def _notes(core: Core) -> Iterator[str]:
    if core.deleted:
        yield "an admin of its group deleted it: only the deletion counts, and only the deletion is sent"
    for session, rejection in core.rejected.items():
        yield f"the rest of the session {session} is ignored: {rejection.why}"
    if core.skipped is not None and core.skipped.authors:
        authors, counts = core.skipped.authors, core.skipped.counts()
        yield f"{len(counts)} sessions by {len(authors)} authors without a role are skipped, such as {min(authors)}"
    for needed, batches in core.deferred.items():
        count = sum(len(batch.transactions) for batch in batches.values())
        yield f"{count} transactions are deferred until {needed} arrives: it is not on the server"
