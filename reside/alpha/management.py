"""The configuration of a replica, read from a map that administrators write. Pure.

Jazz accepts back-dated edits of a removed member, and any writer may write malformed values. So the effective edit of a
member is the last well-formed one that is not dated in the future and was made by Alpha or by an account that has
`replica:manage:all` now. When an account loses this permission, its earlier edits count until Alpha has rewritten the
effective ones in its own name (`take_over`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from reside.model.constants import MADE_AT_TOLERANCE_MS
from reside.model.entities import Management

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from reside.jazz import CoMap, Edit

LABEL_VALUE: Final = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
"""The values of Kubernetes labels, as a regular expression; a placement group is one."""
ENABLED: Final = "enabled"
PLACEMENT_GROUP: Final = "placementGroup"
PODS: Final = "pods"
MAX_PODS: Final = 100
"""Pods that one replica may have."""


def read_management(value: CoMap, may_manage: Callable[[str, int], bool], now_ms: int) -> Management:
    """Return the effective configuration; a replica without any is enabled."""
    enabled = effective_edit(value.history(ENABLED), may_manage, now_ms, _is_enabled)
    group = effective_edit(value.history(PLACEMENT_GROUP), may_manage, now_ms, _is_group)
    pods = effective_edit(value.history(PODS), may_manage, now_ms, _is_number_of_pods)
    return Management(
        enabled=enabled.value if enabled is not None else True,
        placement_group=group.value if group is not None else None,
        pods=pods.value if pods is not None else 1,
    )


def effective_edit(
    history: Sequence[Edit], may_manage: Callable[[str, int], bool], now_ms: int, fits: Callable[[Any], bool]
) -> Edit | None:
    """Return the effective edit; None if there is none, or if it deleted the value.

    Args:
        history: all edits of one member, the oldest first.
        may_manage: whether an edit of an account, with this time in ms, counts.
        now_ms: the current time.
        fits: whether a value is well-formed.
    """
    for edit in reversed(history):
        timely = edit.at <= now_ms + MADE_AT_TOLERANCE_MS
        if timely and may_manage(edit.by, edit.at) and (edit.deleted or fits(edit.value)):
            return None if edit.deleted else edit
    return None


def take_over(value: CoMap, present: Management, account: str) -> None:
    """Rewrite the effective edits of `account` in the name of this node's account."""
    members = {ENABLED: present.enabled, PLACEMENT_GROUP: present.placement_group, PODS: present.pods}
    for member, setting in members.items():
        edit = value.edit(member)
        if edit is not None and edit.by == account:
            value.set(member, setting)


def _is_enabled(value: Any) -> bool:
    return isinstance(value, bool)


def _is_number_of_pods(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_PODS


def _is_group(value: Any) -> bool:
    return value is None or (isinstance(value, str) and re.fullmatch(LABEL_VALUE, value) is not None)
