"""How far a group is validated, so that the next validation resumes there; see `reside.jazz.memory.group_states`."""

from dataclasses import dataclass, field

from reside.jazz.rules.permissions import GroupValidator


@dataclass(slots=True)
class GroupValidation:
    """The validation pass over one group.

    Attributes:
        validator: the pass itself, which can be resumed.
        seen: how many of the group's transactions were validated, in the order of arrival.
        parent_revisions: the parents that were looked up, each with its revision at that time.
    """

    validator: GroupValidator
    seen: int = 0
    parent_revisions: dict[str, int] = field(default_factory=dict)
