"""What administrators decide about a replica, out of a map that they write themselves. Pure.

Jazz alone can't keep out a removed member who back-dates, and anybody may write nonsense: so what counts is what was
written last by Alpha or by an account that has `replica:manage:all` now, not from the future, and well-formed. When
an account loses the permission, Alpha first writes what it had decided anew in its own name (`pin`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from reside.model.constants import MADE_AT_TOLERANCE_MS
from reside.model.entities import Management

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from reside.jazz import CoMap, Edit

_LABEL_VALUE: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
ENABLED: Final = "enabled"
PLACEMENT_GROUP: Final = "placementGroup"


def read_management(value: CoMap, may_manage: Callable[[str], bool], now_ms: int) -> Management:
    """The decisions that count; a replica that nobody decided about is enabled."""
    enabled = in_force(value.history(ENABLED), may_manage, now_ms, _is_enabled)
    group = in_force(value.history(PLACEMENT_GROUP), may_manage, now_ms, _is_group)
    return Management(
        enabled=enabled.value if enabled is not None else True,
        placement_group=group.value if group is not None else None,
    )


def in_force(
    history: Sequence[Edit], may_manage: Callable[[str], bool], now_ms: int, fits: Callable[[Any], bool]
) -> Edit | None:
    """The edit that counts; None if there is none, or if it deleted the value.

    Args:
        history: all edits of one member, oldest first.
        may_manage: whether an account may decide now.
        now_ms: the clock.
        fits: whether a value is well-formed.
    """
    for edit in reversed(history):
        timely = edit.at <= now_ms + MADE_AT_TOLERANCE_MS
        if timely and may_manage(edit.by) and (edit.deleted or fits(edit.value)):
            return None if edit.deleted else edit
    return None


def pin(value: CoMap, present: Management, account: str) -> None:
    """Write what `account` decided anew in our own name, if it decided anything that is in force."""
    wanted = {ENABLED: present.enabled, PLACEMENT_GROUP: present.placement_group}
    for member, decided in wanted.items():
        edit = value.edit(member)
        if edit is not None and edit.by == account:
            value.set(member, decided)


def _is_enabled(value: Any) -> bool:
    return isinstance(value, bool)


def _is_group(value: Any) -> bool:
    return value is None or (isinstance(value, str) and _LABEL_VALUE.fullmatch(value) is not None)
