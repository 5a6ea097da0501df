"""The order of a list: insertions name neighbours, later siblings come first, the order of arrival has no effect."""

import itertools
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.jazz.logs import Log

from reside.jazz.values.listview import ListView
from reside.jazz.wire.session import Transaction

A, B = "co_zA", "co_zB"


def _op(item: Transaction, change: int = 0) -> dict[str, Any]:
    return {"sessionID": item.session, "txIndex": item.index, "changeIdx": change}


def _app(value: str, after: Any) -> dict[str, Any]:
    return {"op": "app", "value": value, "after": after}


def _pre(value: str, before: Any) -> dict[str, Any]:
    return {"op": "pre", "value": value, "before": before}


def _build(transactions: list[Transaction], **arguments: Any) -> list[Any]:
    view = ListView(arguments.get("may_delete", lambda _: True))
    view.reset(transactions, arguments.get("losers", frozenset()))
    return [node.value for node in view.items()]


def _sample() -> tuple[list[Transaction], list[str]]:
    log = Log()
    first = log.add(A, 10, [_app("one", "start"), _app("two", "start")])
    log.add(A, 11, [_app("five", _op(first, 1)), _app("four", _op(first, 1)), _app("three", _op(first, 1))])
    log.add(B, 12, [_app("after one", _op(first, 0))])
    log.add(B, 13, [_pre("before one", _op(first, 0))])
    log.add(A, 14, [_pre("before one, later", _op(first, 0))])
    log.add(B, 15, [_pre("end", "end")])
    log.add(A, 16, [{"op": "del", "insertion": _op(first, 1)}])
    expected = ["before one, later", "before one", "one", "after one", "three", "four", "five", "end"]
    return log.transactions, expected


def test_the_order_of_all_kinds_of_insertions() -> None:
    transactions, expected = _sample()
    assert _build(transactions) == expected


@pytest.mark.parametrize("seed", range(20))
def test_arrival_in_any_order_ends_in_the_same_list(seed: int) -> None:
    """Sessions stay in order within themselves, as the log guarantees."""
    transactions, expected = _sample()
    choose = random.Random(seed)  # noqa: S311 - a test's program
    queues = [[item for item in transactions if item.author == author] for author in (A, B)]
    view = ListView(lambda _: True)
    while any(queues):
        queue = choose.choice([queue for queue in queues if queue])
        count = choose.randint(1, len(queue))
        view.extend(queue[:count])
        del queue[:count]
    assert [node.value for node in view.items()] == expected


def test_equal_times_are_ordered_independently_of_the_arrival() -> None:
    log = Log()
    log.add(A, 10, [_app("a", "start")])
    log.add(B, 10, [_app("b", "start")])
    log.add(B, 10, [_app("c", "start")])
    results = set()
    for order in ((0, 1, 2), (1, 0, 2), (1, 2, 0)):
        view = ListView(lambda _: True)
        for place in order:
            view.extend([log.transactions[place]])
        results.add(tuple(node.value for node in view.items()))
    assert results == {("a", "b", "c")}


def test_an_item_with_an_unknown_neighbour_is_not_shown() -> None:
    log = Log()
    item = log.add(A, 10, [_app("x", "start")])
    unknown = {"sessionID": item.session, "txIndex": 99, "changeIdx": 0}
    log.add(A, 11, [_app("lost", unknown), _pre("lost", unknown), {"op": "del", "insertion": unknown}])
    assert _build(log.transactions) == ["x"]


@pytest.mark.parametrize(
    "change",
    [
        "text",
        None,
        {},
        {"op": "mov"},
        {"op": "app", "value": "x"},
        {"op": "app", "value": "x", "after": {"sessionID": 1}},
        {"op": "app", "value": "x", "after": "end"},
        {"op": "del"},
        {"op": "del", "insertion": "start"},
    ],
)
def test_malformed_changes_have_no_effect(change: Any) -> None:
    log = Log()
    log.add(A, 10, [_app("x", "start"), change, _app("y", "start")])
    assert _build(log.transactions) == ["x", "y"]


def test_an_insertion_after_itself_does_not_loop() -> None:
    log = Log()
    item = log.add(A, 10, [_app("x", "start")])
    own = {"sessionID": item.session, "txIndex": 1, "changeIdx": 0}
    log.add(A, 11, [_app("self", own)])
    assert _build(log.transactions) == ["x"]


def test_a_deletion_by_an_account_that_may_not_delete_has_no_effect() -> None:
    transactions, _ = _sample()
    assert "two" in _build(transactions, may_delete=lambda _: False)


def test_an_insertion_that_does_not_count_is_an_invisible_anchor() -> None:
    log = Log()
    loser = log.add(A, 10, [_app("lost", "start")])
    log.add(B, 11, [_app("kept", _op(loser))])
    assert _build(log.transactions, losers=frozenset({loser})) == ["kept"]


def test_a_long_chain_is_walked_without_recursion() -> None:
    log = Log()
    last = log.add(A, 1, [_app("0", "start")])
    for number in range(1, 5000):
        last = log.add(A, 1 + number, [_app(str(number), _op(last))])
    assert _build(log.transactions) == [str(number) for number in range(5000)]
    assert list(itertools.islice(_build(log.transactions), 2)) == ["0", "1"]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 60), st.booleans()), max_size=60))
def test_incremental_changes_of_a_list_equal_a_rebuild(program: list[tuple[int, int, bool]]) -> None:
    """Insertions beside visible, deleted, unlinked and unknown items; read after every one, or after several."""
    log = Log()
    view = ListView(lambda _: True)
    references: list[Any] = []
    for number, (kind, choice, read) in enumerate(program):
        near = references[choice % len(references)] if references else _op(log.add(A, 0, []))
        changes = [
            [_app(f"{number}", near), _app(f"{number}b", near)],
            [_pre(f"{number}", near), _pre(f"{number}b", near)],
            [_app(f"{number}", "start")],
            [_pre(f"{number}", "end")],
            [{"op": "del", "insertion": near}],
            [{"op": "del", "insertion": {"sessionID": f"{B}_session_z1", "txIndex": choice, "changeIdx": 0}}],
        ][kind]
        item = log.add(B if choice % 2 else A, number + 1, changes)
        references += [_op(item, place) for place in range(len(changes))]
        view.extend([item])
        if read:
            view.items()
    rebuilt = ListView(lambda _: True)
    rebuilt.reset(log.transactions, frozenset())
    assert [item.key for item in view.items()] == [item.key for item in rebuilt.items()]


def test_many_scattered_changes_rebuild_the_list() -> None:
    log = Log()
    first = log.add(A, 1, [_app(str(number), "start") for number in range(400)])
    view = ListView(lambda _: True)
    view.extend([first])
    assert len(view.items()) == 400
    places = list(range(0, 400, 4))
    view.extend([log.add(A, 2, [{"op": "del", "insertion": _op(first, place)} for place in reversed(places)])])
    assert [item.value for item in view.items()] == [str(number) for number in range(400) if number % 4]
