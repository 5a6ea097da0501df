"""The origin of merged transactions, and what their authors cannot claim."""

import json
from typing import Any

import pytest
from support.jazz_controlled_nodes import DetachedNode, registered

from reside.jazz.ids import SessionId
from reside.jazz.values.listview import op_id, op_key
from reside.jazz.wire.merging import Origin, origin_of
from reside.jazz.wire.session import Transaction

pytestmark = pytest.mark.anyio

S, T = "co_zA_session_z1", "co_zB_session_z2"


def _before(meta: dict[str, Any] | None = None, made_at: int = 90) -> Transaction:
    item = Transaction(SessionId(S), 0, made_at, "[]", None, None, "co_zA")
    item.origin = origin_of(meta, made_at, S, None)
    return item


def test_missing_members_of_a_merge_are_those_of_the_previous_transaction() -> None:
    first = _before({"mi": 3, "s": T, "b": "co_zBranch", "t": 40})
    assert first.origin == Origin(T, 3, 50, "co_zBranch")
    assert origin_of({"mi": 4}, 90, S, first) == Origin(T, 4, 50, "co_zBranch")
    assert origin_of({"mi": 4, "s": S}, 90, S, first) == Origin(S, 4, 50, "co_zBranch")
    assert origin_of({"mi": 4, "b": "co_zOther", "t": 1}, 90, S, first) == Origin(T, 4, 89, "co_zOther")
    assert origin_of({"mi": 4}, 100, S, _before()) == Origin(S, 4, 90, None)


def test_a_merge_without_a_session_and_a_previous_transaction_moves_only_the_time() -> None:
    assert origin_of({"mi": 7, "b": "co_zBranch"}, 90, T, None) == Origin(T, 0, 90, None)
    assert origin_of({"mi": 7, "t": 30}, 90, T, None) == Origin(T, 0, 60, None)


@pytest.mark.parametrize(
    "meta",
    [
        None, {}, {"mi": "1"}, {"mi": True}, {"mi": None}, {"mi": 1.5}, {"mi": 1, "t": "5"}, {"mi": 1, "t": 0.5},
        {"mi": 1, "s": 5}, {"mi": 1, "s": S, "b": {}}, {"fww": "init"},
    ],
)  # fmt: skip
def test_other_meta_objects_are_not_merges(meta: Any) -> None:
    assert origin_of(meta, 90, S, _before()) is None


def test_numbers_of_a_merge_may_be_written_with_a_fraction_of_zero() -> None:
    assert origin_of({"mi": 4.0, "s": T, "b": None, "t": 40.0}, 90, S, None) == Origin(T, 4, 50, None)


def test_a_merged_transaction_is_named_by_its_branch() -> None:
    item = _before({"mi": 3, "s": T, "b": "co_zBranch", "t": 40})
    assert (item.name, item.at, item.when) == ((f"{T}_branch_co_zBranch", 3), 50, (50, T, 3))
    raw = {"sessionID": T, "txIndex": 3, "changeIdx": 1, "branch": "co_zBranch"}
    key = op_key(raw)
    assert key == (*item.name, 1)
    assert op_id(key) == raw
    plain = {"sessionID": T, "txIndex": 3, "changeIdx": 1}
    plain_key = op_key(plain)
    assert plain_key is not None
    assert op_id(plain_key) == plain


async def test_a_merge_dated_after_itself_does_not_count() -> None:
    """Otherwise a removed member could write with the role that it has lost."""
    node = await registered(DetachedNode())
    value = node.create_group().create_map({"a": 1})
    value._write([{"op": "set", "key": "a", "value": 2}], {"mi": 0, "s": value._core.transactions[0].session, "t": -5})
    assert value.as_dict() == {"a": 1}
    assert [why for _, _, why in value.refusals()] == [None, "its merge is dated before the transaction itself"]
    value._write([{"op": "set", "key": "a", "value": 3}], {"mi": 7, "s": T, "b": "co_zX", "t": 60_000})
    assert json.dumps(value.as_dict()) == '{"a": 1}', "it is older than what is there"
    edits = value.history("a")
    assert [edit.value for edit in edits] == [3, 1]
    assert {edit.by for edit in edits} == {node.account_id}, "the merger answers for it, whoever it names"
