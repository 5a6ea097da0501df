"""Which operator requests count, how they are answered, and which stacks change their owner."""

from __future__ import annotations

from typing import Any

import pytest

from reside.jazz import Edit, SessionId
from reside.model.errors import InvalidInput, NotAllowed
from reside.sentinel.contract.desired_stacks import Rights
from reside.sentinel.contract.operator_requests import COUNTS_MS, OperatorRequest, read_request, remaining_s
from reside.sentinel.term.operator_requests import MOST_WAITING, Waiting, is_logged
from reside.sentinel.term.reassigning import Change, outcome, refusal

NOW = 10_000_000
OPERATOR, OLD, NEW = "co_zoperator", "co_zold", "co_znew"
RIGHTS = Rights(lambda account, name: (account, name) == (OPERATOR, "stack:reassign"), lambda _: None, NOW)
REASSIGN = {"action": "reassign", "from": OLD, "to": NEW}


def edit(value: Any = REASSIGN, by: str = OPERATOR, at: int = NOW, *, deleted: bool = False) -> Edit:
    return Edit(by, at, SessionId(f"{by}_session_zx"), value, deleted)


def change(owner: str | None = OLD, entry: Edit | None = None, *, may_declare: bool = True) -> Change:
    return Change(owner, OLD, NEW, may_declare, entry)


def test_the_last_edit_of_an_entry_counts_for_ten_minutes() -> None:
    found = read_request([edit({"action": "other"}), edit()], RIGHTS)
    assert found == OperatorRequest(OPERATOR, "reassign", REASSIGN)  # type: ignore[arg-type] # an id is a text
    assert remaining_s([edit(at=NOW - 1000)], RIGHTS) == COUNTS_MS / 1000 - 1
    for history in ([], [edit(), edit(deleted=True)], [edit(at=NOW - COUNTS_MS)], [edit(at=NOW + 60_001)]):
        assert read_request(history, RIGHTS) is None


@pytest.mark.parametrize("value", ["text", None, {}, {"action": ["reassign"]}, {"action": "explode"}])
def test_a_request_that_is_not_understood_is_refused(value: Any) -> None:
    with pytest.raises(InvalidInput):
        read_request([edit(value)], RIGHTS)


def test_a_request_needs_the_permission_of_its_action() -> None:
    with pytest.raises(NotAllowed, match="stack:reassign"):
        read_request([edit(by=NEW)], RIGHTS)


def test_an_account_has_a_limited_number_of_requests_that_wait() -> None:
    waiting = Waiting()
    for number in range(MOST_WAITING):
        assert waiting.has_place(f"r{number}", OPERATOR)
        waiting.begin(f"r{number}", OPERATOR)
    assert not waiting.has_place("another", OPERATOR)
    assert waiting.has_place("r0", OPERATOR)
    assert waiting.has_place("another", NEW)
    waiting.end("r0")
    assert waiting.has_place("another", OPERATOR)


@pytest.mark.parametrize(
    ("action", "members", "logged"),
    [
        ("logs", {"since": {}}, False),
        ("logs", {}, True),
        ("reassign", {"since": {}}, True),  # else an operator could keep what it does out of the log
    ],
)
def test_only_requests_that_follow_logs_are_not_logged(action: str, members: dict[str, Any], *, logged: bool) -> None:
    assert is_logged(OperatorRequest(OPERATOR, action, members)) is logged  # type: ignore[arg-type] # as above


@pytest.mark.parametrize("stacks", ["demo", [1], {"demo": 1}])
def test_stacks_are_a_list_of_names(stacks: Any) -> None:
    request = OperatorRequest(OPERATOR, "reassign", {"stacks": stacks, "from": 1})  # type: ignore[arg-type] # as above
    with pytest.raises(InvalidInput, match="list of names"):
        request.stacks()
    with pytest.raises(InvalidInput, match="no text from"):
        request.text("from")


def test_a_stack_is_given_only_if_it_belongs_to_the_account_that_the_request_names() -> None:
    assert refusal(change()) is None
    assert refusal(change("co_zthird")) == "it belongs to co_zthird"
    assert refusal(change(None)) == "there is no such stack"


def test_a_stack_is_not_given_to_an_account_that_could_not_declare_it() -> None:
    assert "grant it" in (refusal(change(may_declare=False)) or "")


def test_a_stack_is_not_given_to_an_account_whose_last_edit_deletes_it() -> None:
    assert "deleted" in (refusal(change(entry=edit(by=NEW, deleted=True))) or "")
    assert refusal(change(NEW, edit(by=NEW, deleted=True))) is None


def test_a_second_request_finds_the_stack_reassigned() -> None:
    assert refusal(change(NEW)) is None
    assert outcome(change(NEW), is_dry_run=False) == "belongs to it already"
    assert outcome(change(entry=edit(by=NEW)), is_dry_run=True) == "would belong to it"
    assert outcome(change(), is_dry_run=False) == "belongs to it, and stays as it is until it declares the stack"
