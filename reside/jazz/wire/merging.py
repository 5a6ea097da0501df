"""Transactions that were merged from a branch: they count as if they stood in the value from the time of their writing.

A merged transaction is written by whoever merges, and judged by the merger's role at the time of the merge; its meta
tells where and when it stood in the branch: `mi` the index, `s` the session, `b` the branch, `t` by how much (ms) it is
older than the merge. What is as with the merged transaction before it is left out (docs/jazz-protocol.md, section 3).
"""

from dataclasses import dataclass
from typing import Final, Protocol

from reside.jazz.ids import Json

BRANCH: Final = "_branch_"
"""Between a session and a branch in the name of what the branch's writers inserted."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a merged transaction comes from; only the merger says so.

    Attributes:
        session: Its session, with the branch if it has one; insertions into lists are named by it.
        index: Its place there.
        made_at: When it was written, ms since the epoch.
        branch: The branch's id; None for the value itself.
    """

    session: str
    index: int
    made_at: int
    branch: str | None

    @property
    def key(self) -> str:
        """The session as insertions are named by it."""
        return session_key(self.session, self.branch)


class Placed(Protocol):
    """What the origin of a transaction follows from: the transaction before it."""

    @property
    def session(self) -> str:
        """Its session."""

    @property
    def origin(self) -> Origin | None:
        """Where it comes from; None if it was not merged."""

    @property
    def at(self) -> int:
        """When it was written, ms since the epoch."""


def session_key(session: str, branch: Json) -> str:
    """A session's name that differs between a value and its branches."""
    return f"{session}{BRANCH}{branch}" if isinstance(branch, str) and branch else session


def origin_of(meta: dict[str, Json] | None, made_at: int, before: Placed | None) -> Origin | None:
    """The origin of a transaction; None if it was not merged, or its meta is malformed.

    Args:
        meta: Its meta.
        made_at: When it was merged.
        before: The transaction before it in its session.
    """
    index = None if meta is None else meta.get("mi")
    if meta is None or type(index) is not int:
        return None
    age, last = meta.get("t"), None if before is None else before.origin
    if type(age) is int and age:
        made_at -= age
    elif before is not None:
        made_at = before.at
    session, branch = meta.get("s"), meta.get("b")
    if not isinstance(session, str):
        if before is None:
            return None
        session = before.session if last is None else last.session
    if not isinstance(branch, str):
        branch = None if last is None else last.branch
    return Origin(session, index, made_at, branch)
