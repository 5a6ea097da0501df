"""The result of an inspection, as data."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from reside.jazz.ids import Json

Outcome: TypeAlias = Literal["valid", "invalid", "unreadable"]


@dataclass(frozen=True)
class TransactionReport:
    """One transaction.

    Attributes:
        session: the session whose log contains it.
        index: its position in that log.
        author: account or agent id.
        role: the author's role in the owning group at that time; None if it had none.
        made_at: the author's clock, ISO 8601; limited to the end of the year 9999.
        privacy: `private` (encrypted) or `trusting`.
        outcome: whether it counts; `unreadable` if it is permitted, but this account can't decrypt it.
        reason: why it does not count; None if it does.
        changes: its changes; None if they can't be read.
        meta: its metadata; None if there is none.
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
    """The group that owns a value.

    Attributes:
        id: id of the group.
        name: its name; None if it has none.
        kind: `group` or `account`.
        my_role: the role of the account that inspects; None if it has none.
        members: maps accounts, agents and `everyone` to roles.
        parents: maps parent groups to the role that their members get, or `extend` for their own role.
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
        id: id of the value.
        kind: its kind.
        header: its header, as on the wire.
        group: its owner; the value itself if it is a group; None if it has none.
        content: what a reader sees.
        transactions: its history, ordered by time.
        notes: further findings: logs that failed verification, authors missing on the server.
    """

    id: str
    kind: str
    header: Json
    group: OwnerReport | None
    content: Json
    transactions: tuple[TransactionReport, ...]
    notes: tuple[str, ...]
