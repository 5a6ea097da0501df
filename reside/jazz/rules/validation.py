"""How far a group was judged: what a value keeps of the pass over it; see `memory.group_states`."""

from dataclasses import dataclass, field

from reside.jazz.rules.permissions import GroupValidator


@dataclass(slots=True)
class GroupValidation:
    """The pass over one group.

    Attributes:
        validator: Knows how far it came.
        seen: How many of the group's transactions, in the order of arrival, it saw.
        asked: The parents that it asked for, each with the revision it had then.
    """

    validator: GroupValidator
    seen: int = 0
    asked: dict[str, int] = field(default_factory=dict)
