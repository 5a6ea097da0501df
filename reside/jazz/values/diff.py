"""The difference of two sequences: the fewest deletions and insertions that turn one into the other.

The algorithm is Myers' ("An O(ND) Difference Algorithm and Its Variations", 1986), after common ends are removed. If
two sequences have too little in common, everything between their common ends is replaced.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

T = TypeVar("T", bound=Hashable)

_MAX_EDITS: Final = 1_000
"""The search takes time and memory in proportion to the square of this number."""


@dataclass(frozen=True, slots=True)
class Patch(Generic[T]):
    """One change: the items from `start` to before `stop` of the old sequence are replaced by `inserted`."""

    start: int
    stop: int
    inserted: Sequence[T]


def patches(old: Sequence[T], new: Sequence[T], *, max_edits: int = _MAX_EDITS) -> list[Patch[T]]:
    """Return the patches that turn `old` into `new`.

    Their positions refer to `old` and ascend. Any two patches are separated by items that are kept.

    Args:
        old: the current sequence.
        new: the desired sequence.
        max_edits: if more deletions and insertions are necessary, the difference is one patch.
    """
    head = 0
    while head < len(old) and head < len(new) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < len(old) - head and tail < len(new) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    middle, replacement = old[head : len(old) - tail], new[head : len(new) - tail]
    if not middle and not replacement:
        return []
    trace = _search(middle, replacement, max_edits) if middle and replacement else None
    if trace is None:
        return [Patch(head, head + len(middle), replacement)]
    return _joined(_steps(trace, len(middle), len(replacement)), replacement, head)


def _search(old: Sequence[T], new: Sequence[T], max_edits: int) -> list[list[int]] | None:
    """Return the farthest position in `old` on each diagonal for each number of edits; None if there are too many.

    Diagonal k contains the positions x of `old` and x - k of `new`. The list of d edits contains the diagonals -d, -d +
    2, … d.
    """
    trace: list[list[int]] = []
    for edits in range(min(max_edits, len(old) + len(new)) + 1):
        row = []
        for step in range(edits + 1):
            diagonal = 2 * step - edits
            x = _entry(trace[-1], edits, step) if trace else 0
            while x < len(old) and 0 <= x - diagonal < len(new) and old[x] == new[x - diagonal]:
                x += 1
            row.append(x)
            if x >= len(old) and x - diagonal >= len(new):
                trace.append(row)
                return trace
        trace.append(row)
    return None


def _entry(previous: list[int], edits: int, step: int) -> int:
    """Return where a diagonal is entered: by an insertion from the one above, or by a deletion from the one below."""
    if step == 0 or (step < edits and previous[step - 1] < previous[step]):
        return previous[step]
    return previous[step - 1] + 1


def _steps(trace: list[list[int]], x: int, y: int) -> list[tuple[int, int, bool]]:
    """Return the edits in ascending order: position in old, position in new, whether it is an insertion."""
    found = []
    for edits in range(len(trace) - 1, 0, -1):
        previous = trace[edits - 1]
        step = (x - y + edits) // 2
        inserts = step == 0 or (step < edits and previous[step - 1] < previous[step])
        x = previous[step] if inserts else previous[step - 1]
        y = x - (2 * (step if inserts else step - 1) - (edits - 1))
        found.append((x, y, inserts))
    return found[::-1]


def _joined(steps: list[tuple[int, int, bool]], new: Sequence[T], offset: int) -> list[Patch[T]]:
    """Merge edits that have no unchanged item between them into one patch."""
    found: list[list[int]] = []
    for x, y, inserts in steps:
        if not found or found[-1][1] != x or found[-1][3] != y:
            found.append([x, x, y, y])
        found[-1][3 if inserts else 1] += 1
    return [Patch(offset + start, offset + stop, new[first:last]) for start, stop, first, last in found]
