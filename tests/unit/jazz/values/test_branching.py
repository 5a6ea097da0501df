"""The metas of branches, and what a branch shows of its sources as they change."""

import math
from dataclasses import dataclass
from typing import Any

import pytest
from unit.jazz.logs import Log

from reside.jazz.values.branching import (
    before,
    merge_meta,
    merged_from,
    origin_meta,
    pointer_meta,
    points_to,
    start_meta,
    start_of,
    unmerged,
)
from reside.jazz.values.sources import Sources
from reside.jazz.wire.merging import Origin, origin_of
from reside.jazz.wire.session import Transaction

A = "co_zA_session_z1"


def _with(*metas: Any) -> list[Transaction]:
    log = Log()
    for meta in metas:
        log.add("co_zA", 10, []).meta_value = meta
    return log.transactions


def test_a_start_has_the_greatest_count_of_each_session() -> None:
    assert start_of(_with(None, {}, {"fww": "x"})) is None
    assert start_of(_with(start_meta({"a": 1, "b": 3}), start_meta({"a": 2, "b": 1}))) == {"a": 2, "b": 3}


@pytest.mark.parametrize(
    ("meta", "start"),
    [
        (None, None),
        (0, None),
        ("", None),
        (False, None),
        ({}, {}),
        (7, {}),
        ("text", {}),
        ([1], {}),
        ({"a": "1", "b": None, "c": [2], "d": 2}, {"d": 2}),
        ({"a": -1, "b": 1.5, "c": 1e300}, {"b": 1.5, "c": 1e300}),
    ],
)
def test_malformed_counts_are_ignored(meta: Any, start: Any) -> None:
    assert start_of(_with({"from": meta})) == start
    assert merged_from("co_zB", _with({"merged": meta, "branch": "co_zB"})) == (start or {})


def test_a_branch_shows_one_more_of_each_session_and_all_of_others() -> None:
    log = Log()
    first = [log.set("co_zA", time, "k", time) for time in range(4)]
    other = log.set("co_zB", 1, "k", 1)
    assert before({A: 2}, log.transactions) == [*first[:3], other]
    assert before({A: math.inf, "co_zB_session_z1": 0}, log.transactions) == [*first, other]


def test_pointers_without_owner_mean_the_owner_of_the_source() -> None:
    own, other = pointer_meta("draft", None), pointer_meta("draft", "co_zOther")
    assert points_to("draft", "co_zG", _with(own), default="co_zG")
    assert not points_to("draft", "co_zG", _with(other), default="co_zG")
    assert points_to("draft", "co_zOther", _with(own, other), default="co_zG")
    assert not points_to("else", "co_zG", _with(own, None, {"branch": 7}), default="co_zG")


def test_only_what_was_not_merged_is_merged_again() -> None:
    log = Log()
    items = [log.set("co_zA", time, "k", time) for time in range(3)]
    log.add("co_zA", 4, [])
    meta = merge_meta("co_zB", {A: 2}, {})
    assert meta == {"merged": {A: 2}, "branch": "co_zB"}
    merged = merged_from("co_zB", _with(meta, {"merged": {A: 9}, "branch": "co_zOther"}))
    assert unmerged(log.transactions, merged) == items[2:]
    assert merge_meta("co_zB", {A: 4, "new": 1}, merged)["merged"] == {A: 4, "new": 1}


def test_a_copy_is_read_with_the_place_of_its_original() -> None:
    log = Log()
    items = [log.set("co_zA", time, "k", time) for time in (5, 5, 900)]
    for item in items:
        item.origin = Origin(item.session, item.index, item.made_at, "co_zBranch")
    copies, last = Log(), None
    for item in items:
        copy = copies.set("co_zM", 1000, "k", 1)
        meta = origin_meta(item, last, copy.made_at)
        assert ("s" in meta) == ("b" in meta) == (last is None)
        copy.origin = origin_of(meta, copy.made_at, copy.session, copies.transactions[-2] if last else None)
        assert copy.origin == item.origin
        last = item


def test_a_transaction_dated_after_its_merge_is_dated_back() -> None:
    item = Log().set("co_zA", 10_000, "k", 1)
    meta = origin_meta(item, None, 1000)
    assert meta["t"] == 1
    assert origin_of(meta, 1000, "co_zM_session_z1", None) == Origin(A, 0, 999, None)


@dataclass
class _Level:
    valid: list[Transaction]
    start: Any = None
    losers: frozenset[Transaction] = frozenset()
    of: "_Level | None" = None

    def source(self) -> "_Level | None":
        return self.of


def test_sources_report_a_change_only_if_the_branch_shows_something_else() -> None:
    log = Log()
    source = _Level([log.set("co_zA", time, "k", time) for time in range(2)])
    branch = _Level([], start={A: 2}, of=source)
    sources = Sources(branch)
    assert sources.update()
    assert sources.transactions() == source.valid
    assert not sources.update()
    source.valid.append(log.set("co_zA", 3, "k", 3))
    assert sources.update()
    source.valid.append(log.set("co_zA", 4, "k", 4))
    assert not sources.update()
    assert sources.transactions() == source.valid[:3]
    source.losers = frozenset({source.valid[0]})
    assert sources.update()
    assert sources.losers() == source.losers
    source.valid = source.valid[1:]
    assert sources.update()
    assert sources.transactions() == source.valid[:2]
    branch.start = None
    assert sources.update()
    assert sources.transactions() == []


def test_the_source_of_a_source_is_cut_where_the_source_starts() -> None:
    log = Log()
    oldest = _Level([log.set("co_zA", time, "k", time) for time in range(5)])
    middle = _Level([log.set("co_zB", 9, "k", 9)], start={A: 1}, of=oldest)
    sources = Sources(_Level([], start={A: 4}, of=middle))
    assert sources.update()
    assert sources.transactions() == [*oldest.valid[:2], *middle.valid]
    middle.start = None
    assert sources.update()
    assert sources.transactions() == middle.valid
