"""Transactions that were merged from a branch; they are ordered by the time at which they were written there.

The merging account writes a merged transaction, and its role at the time of the merge decides whether it is valid. The
meta has the position in the branch: `mi` is the index, `s` the session, `b` the branch, `t` the age at the merge in ms.
Members equal to those of the previous merged transaction are omitted (docs/jazz-protocol.md, section 3).
"""

from dataclasses import dataclass
from typing import Final, Protocol

from reside.jazz.ids import Json

BRANCH: Final = "_branch_"
"""Separates session and branch in the names of insertions from a branch."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a merged transaction, as stated by the merging account without proof.

    Attributes:
        session: its session in the branch.
        index: its index in that session.
        made_at: when it was written, ms since the epoch.
        branch: the branch's id; None for the value itself.
    """

    session: str
    index: int
    made_at: int
    branch: str | None

    @property
    def key(self) -> str:
        """The name of the session, including the branch, in the names of insertions."""
        return session_key(self.session, self.branch)


class Placed(Protocol):
    """The preceding transaction, from which `origin_of` takes omitted members."""

    @property
    def session(self) -> str:
        """Its session."""

    @property
    def origin(self) -> Origin | None:
        """Its origin; None if it was not merged."""

    @property
    def at(self) -> int:
        """When it was written, ms since the epoch."""


def session_key(session: str, branch: Json) -> str:
    """Return a name for a session of a value or of a branch; no two of them share a name."""
    return f"{session}{BRANCH}{branch}" if isinstance(branch, str) and branch else session


def origin_of(meta: dict[str, Json] | None, made_at: int, session: str, before: Placed | None) -> Origin | None:
    """Return the origin of a transaction; None if it was not merged, or its meta is malformed.

    Args:
        meta: the transaction's meta.
        made_at: when it was merged, ms since the epoch.
        session: its session.
        before: the preceding transaction of its session; None for the first.
    """
    if meta is None:
        return None
    index, age = _integer(meta.get("mi")), _integer(meta.get("t") or 0)
    there, branch = meta.get("s"), meta.get("b")
    if index is None or age is None or not isinstance(there, str | None) or not isinstance(branch, str | None):
        return None
    if age:
        made_at -= age
    elif before is not None:
        made_at = before.at
    if there is None and before is None:
        return Origin(session, 0, made_at, None)  # as in JavaScript, only its time is moved
    last = None if before is None else before.origin
    if there is None:
        there = session if last is None else last.session
    if branch is None:
        branch = None if last is None else last.branch
    return Origin(there, index, made_at, branch)


def _integer(raw: Json) -> int | None:
    """Return an integer; None for anything else. A JSON text may write it with a fraction of zero."""
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        return None
    return int(raw) if raw == raw // 1 else None
