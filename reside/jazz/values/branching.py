"""Branches: values that show the content of another value, their source, as it was when they were made, and their own.

A branch names its source in its header. Its first transaction has the meta `from`: how many transactions each session
of the source had. In the source, a transaction with the meta `branch` points to the branch, and one with the meta
`merged` states what was merged from it (docs/jazz-protocol.md, section 3). Anyone with a role may write any meta, so
malformed parts are ignored.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from reside.jazz.ids import Json
from reside.jazz.wire.session import Transaction

Counts = Mapping[str, float]
"""The number of transactions of each session."""
_FROM: Final = "from"
_MERGED: Final = "merged"


def start_of(transactions: Iterable[Transaction]) -> Counts | None:
    """Return where a branch starts in its source; None if no transaction states it.

    If several state it, because several clients made the branch concurrently, the greatest count of each session holds.
    """
    starts = [meta[_FROM] for meta in _metas(transactions) if meta.get(_FROM) not in (None, False, 0, "")]
    return _greatest(starts) if starts else None


def before(start: Counts, transactions: Iterable[Transaction]) -> list[Transaction]:
    """Return the transactions of a source that its branch shows.

    As in JavaScript, these include the next transaction of each session, and all of a session that `start` does not
    contain.
    """
    return [item for item in transactions if item.index <= start.get(item.session, math.inf)]


def merged_from(branch_id: str, transactions: Iterable[Transaction]) -> Counts:
    """Return how many transactions of each session of a branch were merged into a value with these transactions."""
    return _greatest(meta.get(_MERGED) for meta in _metas(transactions) if meta.get("branch") == branch_id)


def points_to(name: str, owner: str, transactions: Iterable[Transaction], *, default: str) -> bool:
    """Return whether a transaction points to the branch of this name and owner.

    Args:
        name: the name.
        owner: the branch's owner.
        transactions: the transactions of the source that count.
        default: the owner of a branch whose pointer names none, which is the owner of the source.
    """
    return any(meta.get("branch") == name and meta.get("ownerId", default) == owner for meta in _metas(transactions))


def start_meta(counts: Mapping[str, int]) -> dict[str, Json]:
    """Return the meta of a branch's first transaction."""
    return {_FROM: dict(counts)}


def pointer_meta(name: str, owner: str | None) -> dict[str, Json]:
    """Return the meta of a transaction of the source that points to a branch; without an owner, it is the source's."""
    return {"branch": name} if owner is None else {"branch": name, "ownerId": owner}


def merge_meta(branch_id: str, counts: Mapping[str, int], merged: Counts) -> dict[str, Json]:
    """Return the meta that states what was merged.

    Args:
        branch_id: the branch.
        counts: how many transactions each of its sessions has.
        merged: how many an earlier merge stated.
    """
    return {
        _MERGED: {session: count for session, count in counts.items() if merged.get(session, 0) < count},
        "branch": branch_id,
    }


def origin_meta(item: Transaction, last: Transaction | None, made_at: int) -> dict[str, Json]:
    """Return the meta of the copy of a branch's transaction; a session or branch equal to the last one is omitted.

    Args:
        item: the transaction.
        last: the transaction that was copied before it to the same session; None for the first of a merge.
        made_at: when the copy is made, ms since the epoch. A transaction dated later, by a wrong clock, is dated back.
    """
    index, session, branch = _place(item)
    _, last_session, last_branch = (0, None, None) if last is None else _place(last)
    meta: dict[str, Json] = {"mi": index, "t": max(made_at - item.at, 1)}
    if session != last_session:
        meta["s"] = session
    if branch != last_branch:
        meta["b"] = branch
    return meta


def unmerged(transactions: Sequence[Transaction], merged: Counts) -> list[Transaction]:
    """Return the transactions of a branch that are to be merged: those with changes that were not merged before."""
    return [item for item in transactions if item.changes and item.index >= merged.get(item.session, 0)]


def _place(item: Transaction) -> tuple[int, str, str | None]:
    origin = item.origin
    return (item.index, item.session, None) if origin is None else (origin.index, origin.session, origin.branch)


def _metas(transactions: Iterable[Transaction]) -> Iterator[dict[str, Json]]:
    return (item.meta_value for item in transactions if item.meta_value)


def _greatest(counted: Iterable[Json]) -> dict[str, float]:
    """Combine counts of sessions: the greatest holds."""
    found: dict[str, float] = {}
    for counts in counted:
        for session, count in counts.items() if isinstance(counts, dict) else ():
            if isinstance(count, int | float) and count > found.get(session, 0):
                found[session] = count
    return found
