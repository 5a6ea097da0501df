"""Which finished load requests are kept."""

from __future__ import annotations

import pytest

from reside.alpha.finished_requests import Entry, Kept, counts_for
from reside.model.entities import LoadRequest


def kept(*entries: tuple[int, str]) -> Kept:
    """Return requests that finished in this order: id, and what each counts for."""
    found = Kept()
    for at, (number, of) in enumerate(entries):
        found.put(Entry(at, number, of))
    return found


def test_of_each_replica_and_client_the_last_ones_are_kept() -> None:
    found = kept(
        (1, "replica 3"), (2, "client a"), (3, "replica 3"), (4, "replica 3"), (5, "client a"), (6, "client b")
    )
    assert found.surplus(2, 100) == [1]
    assert found.surplus(1, 100) == [1, 2, 3]
    assert found.surplus(1, 100, ["client a", "client c"]) == [2]


def test_what_finished_last_is_kept_whatever_its_id() -> None:
    found = kept((2, "client a"), (3, "client a"), (1, "client a"))
    assert found.surplus(1, 100) == [2, 3]


def test_beyond_the_total_those_that_finished_first_go() -> None:
    found = kept((3, "replica 1"), (1, "replica 2"), (2, "replica 2"), (4, "replica 3"))
    assert found.surplus(10, 4) == []
    assert found.surplus(10, 2) == [3, 1]
    assert found.surplus(1, 2) == [3, 1]
    assert found.surplus(10, 2, []) == [3, 1]


def test_what_was_deleted_counts_no_more() -> None:
    found = kept((1, "replica 3"), (2, "replica 3"))
    found.drop(1)
    found.drop(1)
    assert found.surplus(1, 1) == []
    found.put(Entry(9, 2, "client a"))
    assert found.surplus(1, 0) == [2]


@pytest.mark.parametrize(
    ("status", "version", "expected"),
    [("approved", 4, "replica 7"), ("rejected", None, "client co_zClient"), ("invalid", None, "client co_zClient")],
)
def test_only_a_load_that_was_carried_out_counts_for_its_replica(
    status: str, version: int | None, expected: str
) -> None:
    members = {"id": 1, "status": status, "image": "image", "owner": "co_zOwner", "version": version}
    request = LoadRequest.model_validate(members | {"existingReplica": 7, "targetReplica": 7})
    assert counts_for(request, "co_zClient") == expected
