"""Names in the Sentinel's data: they are on the wire, and both Alpha and the Sentinel use them."""

from __future__ import annotations

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
        "reportsGroup": ("reports", "previewResults", "pruneHeld"),
        "operatorsGroup": ("pruneConfirmed",),
    },
    "CONFIRM": "prune:confirm",
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
    assert sentinel_data.candidate_map(key) == "candidate.load-request.7.abc"
    assert sentinel_data.stack_map("greeter") == "stack.greeter"


def test_the_keys_of_two_requests_never_share_a_prefix() -> None:
    assert not sentinel_data.preview_key(11, "abc").startswith(sentinel_data.preview_prefix(1))
