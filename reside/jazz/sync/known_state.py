"""The known state of the server for each value, on one connection."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, TypeAlias

Counts: TypeAlias = dict[str, int]
"""The number of transactions by session."""
_NONE: Final[Mapping[str, int]] = MappingProxyType({})


def _none() -> Mapping[str, int]:
    return _NONE


@dataclass(slots=True)
class KnownState:
    """What the server has of one value.

    Attributes:
        requested: whether a `load` is unanswered.
        partial: whether that `load` named content, so that the answer contains only what is new.
        comparisons: how often `load` was repeated to learn what is missing on the server.
        answered: whether the server reported what it has.
        header: whether the server has the header.
        acknowledged: the counts that the server reported.
        sent: the counts that were sent but are not acknowledged yet.
        corrections: how many corrections were sent about a gap.
    """

    requested: bool = False
    partial: bool = False
    comparisons: int = 0
    answered: bool = False
    header: bool = False
    acknowledged: Counts = field(default_factory=dict)
    sent: Mapping[str, int] = field(default_factory=_none)
    corrections: int = 0

    def has(self, session: str) -> int:
        """Return how many transactions of a session the server has or will have."""
        return max(self.acknowledged.get(session, 0), self.sent.get(session, 0))
