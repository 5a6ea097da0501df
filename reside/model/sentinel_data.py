"""The Sentinel's data in Jazz: the names by which the Sentinel and the accounts that declare stacks find it.

docs/model.md, section 3, describes the members. These names are on the wire and never change; a test
freezes them.
"""

from __future__ import annotations

from typing import Final

ROOT_NAME: Final = "kubernetes-sentinel.v1"
"""Unique name of the root map."""

CAREFUL: Final = "careful"
"""True while the Sentinel must neither change nor delete objects that it does not know."""
DESIRED: Final = "desired"
"""Map of stack name → id of the map of a desired stack."""
PREVIEWS: Final = "previews"
"""Map of preview key → id of the map of a candidate."""
REPORTS: Final = "reports"
"""Map of stack name → id of the map of the stack's report."""
PREVIEW_RESULTS: Final = "previewResults"
"""Map of preview key → result."""
HELD: Final = "pruneHeld"
"""Map of what is in no stack and waits for a confirmation of its deletion."""
CONFIRMED: Final = "pruneConfirmed"
"""Map in which accounts with the permission `prune:confirm` confirm deletions."""
DECLARERS_GROUP: Final = "declarersGroup"
"""Id of the group that owns `desired` and `previews`; its writers are the accounts that may declare stacks."""
REPORTS_GROUP: Final = "reportsGroup"
"""Id of the group that owns `reports` and `previewResults`; its readers may read what the Sentinel reports."""
OPERATORS_GROUP: Final = "operatorsGroup"
"""Id of the group that owns `pruneConfirmed`; its writers are the accounts that may confirm deletions."""

MAPS_BY_GROUP: Final = {
    DECLARERS_GROUP: (DESIRED, PREVIEWS),
    REPORTS_GROUP: (REPORTS, PREVIEW_RESULTS, HELD),
    OPERATORS_GROUP: (CONFIRMED,),
}
"""Member of the root map that names a group → members that name the maps of this group."""

CANDIDATE: Final = "candidate"
"""Member of a result in `previewResults`: id of the map that was previewed."""

CONFIRM: Final = "prune:confirm"
"""Name of the permission to confirm deletions."""
HELD_OBJECTS: Final = "objects"
"""Member of `pruneHeld`: list of `{object, uid}`."""
HELD_REASONS: Final = "reasons"
"""Member of `pruneHeld`: why they are not deleted; list of texts."""
CONFIRMED_UIDS: Final = "uids"
"""Member of `pruneConfirmed`: uids of objects to delete. All assignments of it count, not only the last one."""

REFERENCED_VALUE: Final = "value"
"""Member of a map that a secret reference names: the value. It counts only if the stack's owner wrote it."""


def stack_map(stack: str) -> str:
    """Return the unique name of the map that points to the desired stack of this name."""
    return f"stack.{stack}"


def preview_key(request: int, revision: str) -> str:
    """Return the key of a load request's candidate in `previews` and `previewResults`.

    Args:
        request: id of the load request.
        revision: revision of the candidate; a candidate with other objects has another key.
    """
    return f"load-request.{request}.{revision}"


def request_of(key: str) -> int | None:
    """Return the id of the load request to whose candidate a preview key belongs; None if it is no such key."""
    kind, _, rest = key.partition(".")
    number = rest.partition(".")[0]
    return int(number) if kind == "load-request" and number.isascii() and number.isdecimal() else None
