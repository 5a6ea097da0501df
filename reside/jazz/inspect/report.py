"""What an inspection finds out, as data."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from reside.jazz.ids import Json

Outcome: TypeAlias = Literal["valid", "invalid", "unreadable"]


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
