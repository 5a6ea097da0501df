"""How far a group was judged: what a value keeps of the pass over it; see `memory.judging`."""

from dataclasses import dataclass, field

from reside.jazz.rules.permissions import GroupJudge


@dataclass(slots=True)
class Judgement:
    """The pass over one group.

    Attributes:
        judge: Knows how far it came.
        taken: How many of the group's transactions, in the order of arrival, it saw.
        asked: The parents that it asked for, each with the revision it had then.
    """

    judge: GroupJudge
    taken: int = 0
    asked: dict[str, int] = field(default_factory=dict)
