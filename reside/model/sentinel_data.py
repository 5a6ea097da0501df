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
REQUESTS: Final = "operatorRequests"
"""Map of key → operator request (docs/model.md, section 3), by accounts with the permission for what is requested."""
ANSWERS: Final = "operatorAnswers"
"""Map of key of an operator request → id of the map with its answer, which only the account that asked can read."""
OWNERS: Final = "stackOwners"
"""Map of stack name → account to which the stack was reassigned. It counts if the volume does not know the stack."""
DECLARERS_GROUP: Final = "declarersGroup"
"""Id of the group that owns `desired` and `previews`; its writers are the accounts that may declare stacks."""
REPORTS_GROUP: Final = "reportsGroup"
"""Id of the group that owns `reports` and `previewResults`; its readers may read what the Sentinel reports of each
object, but not what is live of it."""
OPERATORS_GROUP: Final = "operatorsGroup"
"""Id of the group that owns what operators write; its writers have one of `OPERATOR_PERMISSIONS`."""

MAPS_BY_GROUP: Final = {
    DECLARERS_GROUP: (DESIRED, PREVIEWS),
    REPORTS_GROUP: (REPORTS, PREVIEW_RESULTS, HELD, ANSWERS, OWNERS),
    OPERATORS_GROUP: (CONFIRMED, REQUESTS),
}
"""Member of the root map that names a group → members that name the maps of this group."""

CANDIDATE: Final = "candidate"
"""Member of a result in `previewResults`: id of the map that was previewed."""
VALUES: Final = "values"
"""Member of a result in `previewResults`: id of a map that only the author of the candidate can read, if there is one.

It has the changed values of each object: `Kind/name` → list of `ValueChange` documents.
"""

CONFIRM: Final = "prune:confirm"
"""Name of the permission to confirm deletions."""
REASSIGN: Final = "stack:reassign"
"""Name of the permission to give stacks to another owner."""
MANAGE_STATE: Final = "state:manage"
"""Name of the permission to export, import, move and remove states of stacks."""
READ_LOGS: Final = "logs:read"
"""Name of the permission to read the logs of pods of every replica."""
OPERATOR_PERMISSIONS: Final = (CONFIRM, REASSIGN, MANAGE_STATE, READ_LOGS)
"""Names of the permissions of operators."""
HELD_OBJECTS: Final = "objects"
"""Member of `pruneHeld`: list of `{object, uid}`."""
HELD_REASONS: Final = "reasons"
"""Member of `pruneHeld`: why they are not deleted; list of texts."""
CONFIRMED_UIDS: Final = "uids"
"""Member of `pruneConfirmed`: uids of objects to delete. All assignments of it count, not only the last one."""

ACTION: Final = "action"
"""Member of an operator request: what is requested. The other members depend on it."""
REASSIGN_STACKS: Final = "reassign"
"""Action: give stacks of the account `from` to the account `to`. Needs `REASSIGN`."""
EXPORT_STATE: Final = "export-state"
"""Action: return the state of `stack` as a file. This and the next three need `MANAGE_STATE`."""
IMPORT_STATE: Final = "import-state"
"""Action: replace the state of `stack` by that in `file`."""
PRUNE_STATES: Final = "prune-states"
"""Action: remove the states that belong to no stack."""
MIGRATE_STATES: Final = "migrate-states"
"""Action: move the states of `stacks` to the backend of the Sentinel's settings; those that fit into some seconds."""
ABANDON: Final = "abandon"
"""Member of that action: whether states that are elsewhere are given up."""
SHOW_LOGS: Final = "logs"
"""Action: return the end of the logs of a replica's pods, as a file: a JSON list of `PodLog` documents.

Needs `READ_LOGS`.
"""
REPLICA: Final = "replica"
TAIL: Final = "tail"
"""Member of that action: number of lines of each pod."""
SINCE: Final = "since"
"""Member of that action: pod → position of the last line that the operator has. Only what is new is returned, and each
log with its position (`PodLog.cursor`)."""
WAIT: Final = "wait"
"""Member of that action, with `since`: seconds within which the answer waits for something new; 0 if there is none."""
PODS: Final = "pods"
"""Member of its result: number of pods in the file."""
STACK: Final = "stack"
FILE: Final = "file"
"""Member of a request or an answer: id of a file in Jazz."""
FROM: Final = "from"
TO: Final = "to"
STACKS: Final = "stacks"
"""Member of a request: list of stack names; empty: all. Member of an answer: stack name → what became of it."""
FAILED: Final = "failed: "
"""Beginning of what became of a stack, if an error prevented it."""
DRY_RUN: Final = "dryRun"
"""Member of a request: whether nothing is to be changed, so that the answer is a preview."""
RESULT: Final = "result"
"""Member of an answer: what was done. It is written last."""
ERROR: Final = "error"
"""Member of an answer, in place of `result`: why nothing was done."""

REFERENCED_VALUE: Final = "value"
"""Member of a map that a secret reference names: the value. It counts only if the stack's owner wrote it."""


def live_group(kind: str) -> str:
    """Return the member of the root map that names the group that owns what is live of objects of a kind.

    Its readers are the accounts that may read, or declare, objects of the kind.
    """
    return f"liveGroup.{kind}"


def live_map(kind: str) -> str:
    """Return the member of a report that names the map of what is live of its objects of a kind, by `Kind/name`."""
    return f"live.{kind}"


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
