"""What the server has of each value, as far as one connection knows."""

from dataclasses import dataclass, field
from typing import TypeAlias

Counts: TypeAlias = dict[str, int]
"""How many transactions there are, by session."""


@dataclass(slots=True)
class KnownState:
    """What the server has of one value.

    Attributes:
        requested: A `load` is to be answered.
        partial: The `load` said that something is here already, so that content in answer tells only what is new.
        comparisons: How often it was asked again, to learn what it lacks.
        answered: The server said what it has.
        header: It has the header.
        acknowledged: What it said that it has.
        sent: What it was sent besides, and has not acknowledged yet.
        corrections: How often it was told that it left a gap.
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
        """What the server has or will have of a session."""
        return max(self.acknowledged.get(session, 0), self.sent.get(session, 0))
