"""What the server has of each value, as far as one connection knows."""

from dataclasses import dataclass, field
from typing import TypeAlias

Counts: TypeAlias = dict[str, int]
"""How many transactions there are, by session."""


@dataclass(slots=True)
class KnownState:
    """What the server has of one value.

    Attributes:
        requested: a `load` is to be answered.
        partial: the `load` said that something is here already, so that content in answer tells only what is new.
        comparisons: how often it was asked again, to learn what it lacks.
        answered: the server said what it has.
        header: it has the header.
        acknowledged: what it said that it has.
        sent: what it was sent besides, and has not acknowledged yet.
        corrections: how often it was told that it left a gap.
    """

    requested: bool = False
    partial: bool = False
    comparisons: int = 0
    answered: bool = False
    header: bool = False
    acknowledged: Counts = field(default_factory=dict)
    sent: Counts = field(default_factory=dict)
    corrections: int = 0

    def has(self, session: str) -> int:
        """Return what the server has or will have of a session."""
        return max(self.acknowledged.get(session, 0), self.sent.get(session, 0))
