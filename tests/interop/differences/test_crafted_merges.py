"""Transactions with the meta of a merge that no client writes: placed as in JavaScript, or as docs/jazz.md says."""

from typing import Any

import pytest
from interop.differences.conftest import Setup, set_key
from support.jazz_nodes import content

from reside.jazz import now_ms

pytestmark = pytest.mark.anyio

S, T = "co_zSomeone_session_z1", "co_zOther_session_z2"
LONG_AGO = 3_600_000
MERGES: dict[str, list[dict[str, Any] | None]] = {
    "without session": [{"mi": 0}],
    "without session, long ago": [{"mi": 0, "t": LONG_AGO}, {"mi": 1}],
    "without session, after another": [None, {"mi": 4, "t": LONG_AGO}, {"mi": 5}],
    "the time of the previous": [{"mi": 0, "s": S, "t": LONG_AGO}, {"mi": 1}, {"mi": 2, "t": 0}],
    "null members": [{"mi": 0, "s": S, "b": None, "t": None}, {"mi": 1, "s": None, "t": LONG_AGO}],
    "in the future": [{"mi": 0, "s": S, "t": -LONG_AGO}, {"mi": 1}, {"mi": 2, "t": 1}],
    "fractions of zero": [{"mi": 0.0, "s": S, "t": float(LONG_AGO)}],
    "the same time, the index decides": [{"mi": 7, "s": S, "t": 10}, {"mi": 5, "s": S, "t": 11}],
    "an ordinary one between": [{"mi": 0, "s": S, "t": LONG_AGO}, None, {"mi": 1}],
    "branches": [{"mi": 0, "s": S, "b": "co_zB", "t": 9}, {"mi": 0, "s": S, "b": "co_zC", "t": 9}],
}


@pytest.mark.parametrize("private", [False, True])
@pytest.mark.parametrize("kind", MERGES)
async def test_crafted_merges_have_their_place_in_a_map(setup: Setup, kind: str, *, private: bool) -> None:
    metas = MERGES[kind]
    value = setup.group.create_map({f"k{number}": "old" for number in range(len(metas))} | {"all": "old"})
    await setup.admin.flush()
    at = now_ms() + 100  # what moves by a few milliseconds does not tie with what was there
    for number, meta in enumerate(metas):
        changes = [set_key(f"k{number}", "new"), set_key("all", number)]
        await setup.write(value.id, *changes, meta=meta, private=private, made_at=at + number)
    await setup.both(value.id)


@pytest.mark.parametrize("kind", MERGES)
async def test_crafted_merges_have_their_place_in_a_list_and_a_feed(setup: Setup, kind: str) -> None:
    """An insertion that is refused, because its origin is in the future, remains as an anchor for others."""
    items, feed = setup.group.create_list(["a"]), setup.group.create_feed()
    feed.push("old")
    await setup.admin.flush()
    at = now_ms() + 100  # what moves by a few milliseconds does not tie with what was there
    for number, meta in enumerate(MERGES[kind]):
        change = {"op": "app", "value": number, "after": "start"}
        await setup.write(items.id, change, meta=meta, made_at=at + number)
        await setup.write(feed.id, number, meta=meta, made_at=at + number)
    meta = MERGES[kind][0] or {}
    session = meta.get("s") or setup.writer._host.writer.session
    branch = {"branch": meta["b"]} if meta.get("b") else {}
    first = {"sessionID": session, "txIndex": int(meta["mi"] if meta.get("s") else 0), "changeIdx": 0} | branch
    await setup.write(items.id, {"op": "app", "value": "last", "after": first}, made_at=at + 10)
    await setup.both(items.id)
    await setup.both(feed.id)


@pytest.mark.parametrize(
    "meta", [{"mi": "0"}, {"mi": 0, "t": "3600000"}, {"mi": 1.5}, {"mi": 0, "s": 5}, {"mi": 0, "s": S, "b": 5}]
)
async def test_a_merge_with_members_of_wrong_types_is_an_ordinary_transaction(
    setup: Setup, meta: dict[str, Any]
) -> None:
    """JavaScript computes with them: what comes out may depend on the arrival, or have an author that is none."""
    value = setup.group.create_map({"a": "old"})
    await setup.admin.flush()
    await setup.write(value.id, set_key("a", "new"), meta=meta | {"t": meta.get("t", LONG_AGO)})
    found: Any = await setup.python(value.id)
    assert content(found) == {"a": "new"}
    assert await setup.javascript(value.id) == {"a": "old"}


async def test_a_copy_with_deletions_needs_a_merger_that_may_delete(setup: Setup) -> None:
    """JavaScript asks for the role of whoever the copy names as its author."""
    items = setup.group.create_list(["a", "b"], restrict_deletion=True)
    await setup.admin.flush()
    (edit, _) = items.edits()
    key = {"sessionID": edit.session, "txIndex": 0, "changeIdx": 0}
    forged = {"mi": 99, "s": edit.session, "t": 0}
    await setup.write(items.id, {"op": "del", "insertion": key}, meta=forged)
    found: Any = await setup.python(items.id)
    assert content(found) == ["a", "b"]
    assert [why for _, _, why in found.refusals()][-1] == "it deletes items, which only admins and managers may do here"
    assert await setup.javascript(items.id) == ["b"]
