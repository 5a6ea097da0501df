"""Looking at a value from outside: what it is, who may do what, and for each transaction why it counts or does not.

`python -m reside.jazz inspect URL ID` prints it. Whoever has no key for a value sees who wrote when, and whether it was
allowed: that needs no key. What reveals keys is never shown.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, TypeAlias

from .covalue import Core
from .dates import date_of
from .errors import ValueDeleted
from .groups.account import Account
from .groups.group import Group
from .ids import Json
from .node import Node
from .rules.group_state import GroupState
from .rules.permissions import refusal_of_write
from .values.cofeed import CoFeed
from .values.colist import CoList
from .values.comap import CoMap
from .values.owned import OwnedValue
from .values.stream import FileStream
from .values.text import CoPlainText
from .values.value import Value
from .wire.session import Transaction

Outcome: TypeAlias = Literal["valid", "invalid", "unreadable"]

_SECRET_STARTS: Final = ("keySecret_z", "sealed_U", "sealedForGroup_U", "encrypted_U")
_MAX_SHOWN: Final = 100


@dataclass(frozen=True)
class TransactionReport:
    """One transaction.

    Attributes:
        session: Its log.
        index: Its place in that log.
        author: Account or agent.
        role: The author's role in the owning group at that time; None for none.
        made_at: The author's clock, ISO 8601; at most the end of the year 9999.
        privacy: `private` (encrypted) or `trusting`.
        outcome: Whether it counts; `unreadable` if it would, but this account has no key.
        reason: Why it does not count; None if it does.
        changes: What it says; None if it can't be read.
        meta: What it says to readers' machinery; None for nothing.
    """

    session: str
    index: int
    author: str
    role: str | None
    made_at: str
    privacy: str
    outcome: Outcome
    reason: str | None
    changes: Json
    meta: Json


@dataclass(frozen=True)
class OwnerReport:
    """A group.

    Attributes:
        id: Its id.
        name: Its name, if it has one.
        kind: `group` or `account`.
        my_role: The role of the account that looks; None for none.
        members: Account (or agent, or `everyone`) to role.
        parents: Group to mapping.
    """

    id: str
    name: str | None
    kind: str
    my_role: str | None
    members: dict[str, str]
    parents: dict[str, str]


@dataclass(frozen=True)
class Report:
    """A value.

    Attributes:
        id: Its id.
        kind: What it is.
        header: Its header, as it stands on the wire.
        group: Its owner; itself if it is a group; None if it has none.
        content: What a reader sees.
        transactions: Its history in the order of time.
        notes: What else should be known: logs that did not verify, authors that are not on the server.
    """

    id: str
    kind: str
    header: Json
    group: OwnerReport | None
    content: Json
    transactions: tuple[TransactionReport, ...]
    notes: tuple[str, ...]


async def inspect_value(node: Node, co_id: str, *, timeout: float = 30.0) -> Report:  # noqa: ASYNC109 - as Node.load
    """Loads a value and tells all of it.

    Raises:
        ValueNotFound: The server does not have it.
        JazzTimeout: It did not come in time.
    """
    try:
        value = await node.load(co_id, timeout=timeout)
    except ValueDeleted:
        value = node.object_of(node.store.core(co_id), Value)
    value.refresh()
    core = node.store.core(value.id)
    group = value if isinstance(value, Group) else _owner(value)
    transactions = _judged_group(value) if isinstance(value, Group) else _judged(value, core, group)
    return Report(
        value.id,
        value.kind,
        None if core.header is None else dict(core.header.raw),
        None if group is None else _owner_report(group),
        _content(value),
        tuple(sorted(transactions, key=lambda report: (report.made_at, report.session, report.index))),
        tuple(_notes(core)),
    )


def render(report: Report) -> str:
    """A report as text."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Report) -> Iterator[str]:
    yield f"{report.id}  {report.kind}"
    created, unique = report.header.get("createdAt"), report.header.get("uniqueness")
    yield f"  created  {created}" if created else f"  unique   {json.dumps(unique)}"
    if report.group is not None:
        yield from _owner_lines(report.group, itself=report.group.id == report.id)
    for note in report.notes:
        yield f"  note     {note}"
    yield "content"
    yield from (f"  {line}" for line in json.dumps(report.content, indent=2, ensure_ascii=False).splitlines())
    counted = sum(1 for item in report.transactions if item.outcome == "valid")
    yield f"transactions: {len(report.transactions)}, of which {counted} count"
    for item in report.transactions:
        yield f"  {item.outcome:<10} {item.made_at}  {item.privacy:<8} {item.author} ({item.role or 'no role'})"
        yield f"             {item.session.partition('_session_')[2]}/{item.index}  {_shown(item.changes)}"
        if item.reason is not None:
            yield f"             because {item.reason}"


def _owner_lines(group: OwnerReport, *, itself: bool) -> Iterator[str]:
    name = f" {json.dumps(group.name, ensure_ascii=False)}" if group.name else ""
    if not itself:
        yield f"  owner    {group.kind} {group.id}{name}"
    elif name:
        yield f"  name    {name}"
    yield f"  my role  {group.my_role or 'none'}"
    for member, role in group.members.items():
        yield f"  member   {member} {role}"
    for parent, mapping in group.parents.items():
        yield f"  extends  {parent} {mapping}"


def _shown(changes: Json) -> str:
    if changes is None:
        return "(can't be read)"
    text = json.dumps(changes, ensure_ascii=False)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}… ({len(text)} characters)"


def _owner(value: Value) -> Group | None:
    return value.group if isinstance(value, OwnedValue) and value.has_owner else None


def _owner_report(group: Group) -> OwnerReport:
    parents = {str(parent): mapping for parent, mapping in group.parents().items()}
    return OwnerReport(group.id, group.name, group.kind, group.my_role, group.members(), parents)


def _judged_group(group: Group) -> Iterator[TransactionReport]:
    state = group.state
    for verdict in state.verdicts:
        outcome: Outcome = "valid" if verdict.refusal is None else "invalid"
        yield _report(verdict.transaction, state, outcome, verdict.refusal)


def _judged(value: Value, core: Core, group: Group | None) -> Iterator[TransactionReport]:
    reasons = {(session, index): reason for session, index, reason in _refusals(value)}
    state = None if group is None else group.state
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
    """JSON without what reveals keys."""
    if isinstance(raw, dict):
        return {key: _masked(value) for key, value in raw.items()}
    if isinstance(raw, list):
        return [_masked(value) for value in raw]
    if isinstance(raw, str) and raw.startswith(_SECRET_STARTS):
        return f"({raw.partition('_')[0]}, not shown)"
    return raw


def _content(value: Value) -> Json:  # noqa: PLR0911 - one return a kind
    if isinstance(value, Account):
        return {"name": value.name, "profile": value.profile_id, "agent": value.agent_id}
    if isinstance(value, Group):
        return {"members": value.members(), "parents": {**value.parents()}, "readKey": value.state.get("readKey")}
    if isinstance(value, CoMap):
        return value.as_dict()
    if isinstance(value, CoPlainText):
        return str(value)
    if isinstance(value, CoList):
        return value.as_list()
    if isinstance(value, FileStream):
        info = value.info
        return {**(asdict(info) if info is not None else {}), "received": value.received, "finished": value.finished}
    if isinstance(value, CoFeed):
        return [{"by": entry.by, "at": entry.at, "value": entry.value} for entry in value.entries()]
    return None


def _notes(core: Core) -> Iterator[str]:
    if core.deleted:
        yield "an admin of its group deleted it: nothing else of it counts, and nothing else is sent any more"
    for session in core.rejected:
        yield f"the log of {session} goes on with what does not verify; that was refused"
    for author, batches in core.parked.items():
        count = sum(len(batch.transactions) for batch in batches)
        yield f"{count} transactions by {author} wait: that account is not on the server"
