"""Read operator requests (docs/model.md, section 3): who asks for what, and whether that account may. Pure.

A request counts for ten minutes. So one that nobody has answered is not carried out when nobody expects it any more.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from reside.jazz import AccountId
from reside.model import sentinel_data as names
from reside.model.constants import MADE_AT_TOLERANCE_MS
from reside.model.errors import InvalidInput, NotAllowed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from reside.jazz import Edit
    from reside.sentinel.contract.desired_stacks import Rights

COUNTS_MS: Final = 600_000
"""For how long a request counts, and its answer is kept."""
PERMISSIONS: Final = {
    names.REASSIGN_STACKS: names.REASSIGN,
    names.EXPORT_STATE: names.MANAGE_STATE,
    names.IMPORT_STATE: names.MANAGE_STATE,
    names.PRUNE_STATES: names.MANAGE_STATE,
    names.MIGRATE_STATES: names.MANAGE_STATE,
    names.SHOW_LOGS: names.READ_LOGS,
}
"""Action → permission that it needs."""


@dataclass(frozen=True)
class OperatorRequest:
    """A request of an account that may ask for it.

    Attributes:
        by: the account.
        action: what is requested.
        members: the other members, unchecked.
        age_s: seconds since it was made.
    """

    by: AccountId
    action: str
    members: Mapping[str, Any]
    age_s: float = field(default=0.0, compare=False)

    def text(self, member: str) -> str:
        """Return a member that is a text.

        Raises:
            InvalidInput: it is not.
        """
        found = self.members.get(member)
        if not isinstance(found, str) or not found:
            raise InvalidInput(f"the request {self.action} has no text {member}: update the command or the Sentinel")
        return found

    def stacks(self) -> tuple[str, ...]:
        """Return the names of stacks, each once; none: all stacks.

        Raises:
            InvalidInput: they are not a list of texts.
        """
        found = self.members.get(names.STACKS, [])
        if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
            raise InvalidInput(f"{names.STACKS} of the request {self.action} is not a list of names")
        return tuple(dict.fromkeys(found))

    def number(self, member: str, default: int, largest: int, *, smallest: int = 1) -> int:
        """Return a member that is a number; `default` without it.

        Raises:
            InvalidInput: it is not, or it is not from `smallest` to `largest`.
        """
        found = self.members.get(member, default)
        if not isinstance(found, int) or isinstance(found, bool) or not smallest <= found <= largest:
            raise InvalidInput(f"{member} of the request {self.action} is not a number from {smallest} to {largest}")
        return found

    def texts(self, member: str, most: int) -> dict[str, str] | None:
        """Return a member that is an object of texts; None without it.

        Raises:
            InvalidInput: it is not, or has more than `most` members.
        """
        found = self.members.get(member)
        if found is None:
            return None
        if (
            not isinstance(found, dict)
            or len(found) > most
            or not all(isinstance(each, str) for each in found.values())
        ):
            raise InvalidInput(f"{member} of the request {self.action} is not an object of at most {most} texts")
        return found

    def is_set(self, member: str) -> bool:
        """Return whether a member is true."""
        return self.members.get(member) is True

    @property
    def is_dry_run(self) -> bool:
        """Whether nothing is to be changed."""
        return self.is_set(names.DRY_RUN)


def read_request(history: Sequence[Edit], rights: Rights) -> OperatorRequest | None:
    """Return the request in an entry; None if there is none that counts now.

    Args:
        history: all edits of the entry, oldest first. Only the last one counts, and nobody needs to change a request.
        rights: who may ask for what.

    Raises:
        InvalidInput: the request is malformed, or its action is unknown.
        NotAllowed: its author lacks the permission.
    """
    last = history[-1] if history else None
    if last is None or last.deleted or not _is_timely(last.at, rights.now_ms):
        return None
    if not isinstance(last.value, dict):
        raise InvalidInput("the request is not a JSON object")
    action = last.value.get(names.ACTION)
    needed = PERMISSIONS.get(action) if isinstance(action, str) else None
    if needed is None:
        raise InvalidInput(f"this Sentinel does not know the action {action!r}: update the Sentinel")
    if not rights.granted(last.by, needed):
        raise NotAllowed(f"{last.by} lacks {needed}")
    return OperatorRequest(AccountId(last.by), str(action), last.value, (rights.now_ms - last.at) / 1000)


def remaining_s(history: Sequence[Edit], rights: Rights) -> float:
    """Return the seconds for which the last edit of an entry still counts."""
    return max(0.0, (history[-1].at + COUNTS_MS - rights.now_ms) / 1000)


def _is_timely(at: int, now_ms: int) -> bool:
    return now_ms - COUNTS_MS < at <= now_ms + MADE_AT_TOLERANCE_MS
