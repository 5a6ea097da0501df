"""Names in the Sentinel's data: they are on the wire, and both Alpha and the Sentinel use them."""

from __future__ import annotations

import pytest

from reside.model import sentinel_data

FROZEN = {
    "ROOT_NAME": "kubernetes-sentinel.v1",
    "CAREFUL": "careful",
    "DESIRED": "desired",
    "PREVIEWS": "previews",
    "REPORTS": "reports",
    "PREVIEW_RESULTS": "previewResults",
    "DECLARERS_GROUP": "declarersGroup",
    "REPORTS_GROUP": "reportsGroup",
    "HELD": "pruneHeld",
    "CONFIRMED": "pruneConfirmed",
    "OPERATORS_GROUP": "operatorsGroup",
    "MAPS_BY_GROUP": {
        "declarersGroup": ("desired", "previews"),
        "reportsGroup": ("reports", "previewResults", "pruneHeld", "operatorAnswers", "stackOwners"),
        "operatorsGroup": ("pruneConfirmed", "operatorRequests"),
    },
    "CONFIRM": "prune:confirm",
    "REASSIGN": "stack:reassign",
    "OPERATOR_PERMISSIONS": ("prune:confirm", "stack:reassign", "state:manage", "logs:read"),
    "READ_LOGS": "logs:read",
    "SHOW_LOGS": "logs",
    "REPLICA": "replica",
    "TAIL": "tail",
    "PODS": "pods",
    "MANAGE_STATE": "state:manage",
    "EXPORT_STATE": "export-state",
    "IMPORT_STATE": "import-state",
    "PRUNE_STATES": "prune-states",
    "MIGRATE_STATES": "migrate-states",
    "ABANDON": "abandon",
    "FAILED": "failed: ",
    "STACK": "stack",
    "FILE": "file",
    "REQUESTS": "operatorRequests",
    "ANSWERS": "operatorAnswers",
    "OWNERS": "stackOwners",
    "ACTION": "action",
    "REASSIGN_STACKS": "reassign",
    "FROM": "from",
    "TO": "to",
    "STACKS": "stacks",
    "DRY_RUN": "dryRun",
    "RESULT": "result",
    "ERROR": "error",
    "HELD_OBJECTS": "objects",
    "HELD_REASONS": "reasons",
    "CONFIRMED_UIDS": "uids",
    "CANDIDATE": "candidate",
    "REFERENCED_VALUE": "value",
}


def test_the_members_are_frozen() -> None:
    assert {name: getattr(sentinel_data, name) for name in FROZEN} == FROZEN


def test_the_unique_names_and_keys_are_frozen() -> None:
    key = sentinel_data.preview_key(7, "abc")
    assert key == "load-request.7.abc"
    assert sentinel_data.stack_map("greeter") == "stack.greeter"
    assert sentinel_data.live_group("ConfigMap") == "liveGroup.ConfigMap"
    assert sentinel_data.live_map("ConfigMap") == "live.ConfigMap"


@pytest.mark.parametrize(
    ("key", "request_id"),
    [
        (sentinel_data.preview_key(11, "abc"), 11),
        ("load-request.1", 1),
        ("load-request.x.abc", None),
        ("load-request.²", None),
        ("load-request", None),
        ("other.11.abc", None),
    ],
)
def test_a_preview_key_names_its_load_request(key: str, request_id: int | None) -> None:
    assert sentinel_data.request_of(key) == request_id
