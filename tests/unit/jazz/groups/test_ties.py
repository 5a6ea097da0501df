"""Changes of a group in one millisecond, by several sessions."""

import itertools
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.jazz.logs import Log, judge, refusals

from reside.jazz.rules.group_state import GroupState
from reside.jazz.rules.permissions import GroupValidator, validate_group
from reside.jazz.rules.ties import Ruling
from reside.jazz.wire.session import Transaction

ADMIN, EVE = "co_zM", "co_zEve"
NAMES = st.permutations(["co_zA", "co_zB", "co_zC", "co_zX", "co_zY", "co_zZ"])
"""Members in any order: their ids decide the order of their sessions."""
ROLES = ["admin", "manager", "writer", "reader", "revoked", "adminInvite", "readerInvite", "writeOnlyInvite"]


def _founded() -> Log:
    log = Log()
    log.set(ADMIN, 1, ADMIN, "admin")
    return log


@given(NAMES)
def test_a_role_can_be_used_in_the_millisecond_in_which_it_is_given(names: list[str]) -> None:
    first, second, third, fourth, *_ = names
    log = _founded()
    log.set(ADMIN, 5, first, "admin")
    log.set(first, 5, second, "managerInvite")
    log.set(second, 5, third, "manager")
    log.set(third, 5, "readKey", "key_z1")
    log.set(third, 5, fourth, "writer")
    log.set(fourth, 5, EVE, "writer")  # a writer adds nobody
    state = judge(log, admin=ADMIN)
    assert [refusal is None for refusal in refusals(state)] == [True] * 6 + [False]
    assert state.role_of(fourth, 5) == "writer"
    assert state.role_of(fourth, 4) is None


@given(NAMES)
def test_an_admin_who_is_added_and_acts_at_the_groups_creation_counts(names: list[str]) -> None:
    log = Log()
    log.set(names[0], 1, names[1], "admin")
    log.set(ADMIN, 1, ADMIN, "admin")
    log.set(ADMIN, 1, names[0], "admin")
    assert judge(log, admin=ADMIN).role_of(names[1], 1) == "admin"


@given(NAMES)
def test_what_a_member_did_in_the_millisecond_of_its_removal_counts(names: list[str]) -> None:
    """It may have been written before, and a member can back-date by a millisecond anyway."""
    bob, friend, *_ = names
    log = _founded()
    log.set(ADMIN, 2, bob, "manager")
    log.set(ADMIN, 5, bob, "revoked")
    log.set(bob, 5, friend, "writer")
    state = judge(log, admin=ADMIN)
    assert refusals(state) == [None] * 4
    assert (state.role_of(bob, 5), state.role_of(friend, 5)) == (None, "writer")


@given(NAMES)
def test_a_removal_wins_over_a_grant_of_the_same_millisecond(names: list[str]) -> None:
    bob, friend, *_ = names
    log = _founded()
    log.set(ADMIN, 2, bob, "manager")
    log.set(bob, 5, friend, "writer")
    log.set(ADMIN, 5, friend, "revoked")
    assert judge(log, admin=ADMIN).role_of(friend, 5) is None


@given(NAMES)
def test_an_extension_gives_roles_in_its_millisecond(names: list[str]) -> None:
    bob, friend, *_ = names
    above = _founded()
    above.set(ADMIN, 2, bob, "admin")
    parents = {"co_zParent": judge(above, admin=ADMIN, co_id="co_zParent")}
    log = _founded()
    log.set(bob, 5, friend, "writer")
    log.set(ADMIN, 5, "parent_co_zParent", "extend")
    assert judge(log, admin=ADMIN, groups=parents).role_of(friend, 5) == "writer"


@given(NAMES)
def test_a_write_key_can_be_revealed_in_the_millisecond_in_which_it_is_set(names: list[str]) -> None:
    bob, guest, *_ = names
    log = _founded()
    log.set(ADMIN, 2, bob, "writeOnlyInvite")
    log.set(guest, 5, f"key_z1_for_{ADMIN}", "sealed_U1")
    log.set(bob, 5, f"writeKeyFor_{guest}", "key_z1")
    assert refusals(judge(log, admin=ADMIN)) == [None] * 4


@pytest.mark.parametrize("tails", [("z1", "z2"), ("z2", "z1")])
def test_an_admin_demoted_itself_in_another_session_of_the_same_millisecond(tails: tuple[str, str]) -> None:
    """A manager may change it from then on."""
    log = _founded()
    log.set(ADMIN, 2, "co_zA", "manager")
    log.set(ADMIN, 2, "co_zB", "admin")
    log.set("co_zB", 5, "co_zB", "reader", tail=tails[0])
    log.set("co_zA", 5, "co_zB", "writer", tail=tails[1])
    assert judge(log, admin=ADMIN).role_of("co_zB", 5) == "writer"


@given(NAMES, st.data())
def test_all_grants_of_an_honest_history_within_a_millisecond_count(names: list[str], data: st.DataObject) -> None:
    log, given_to = _founded(), {ADMIN: "admin"}
    for member in names:
        powers = [author for author, role in given_to.items() if role in ("admin", "manager", "adminInvite")]
        author = data.draw(st.sampled_from(powers))
        allowed = {"admin": ROLES, "manager": ["manager", "writer", "readerInvite"], "adminInvite": ["admin"]}
        role = data.draw(st.sampled_from([role for role in allowed[given_to[author]] if role != "revoked"]))
        log.set(author, 5, member, role, tail=data.draw(st.sampled_from(["z1", "z2", "z3"])))
        given_to[member] = role
    assert refusals(judge(log, admin=ADMIN)) == [None] * len(log.transactions)


@st.composite
def _logs(draw: st.DrawFn) -> list[Transaction]:
    """Return the log of a group whose members write in few milliseconds."""
    log = _founded()
    members = ["co_zA", "co_zY", ADMIN, EVE]
    for _ in range(draw(st.integers(2, 14))):
        author = draw(st.sampled_from(members))
        key = draw(st.sampled_from([*members, "everyone", "readKey", f"writeKeyFor_{author}", "parent_co_zParent"]))
        value: Any = draw(st.sampled_from([*ROLES, "key_z1"]))
        log.set(author, draw(st.integers(1, 3)), key, value, tail=draw(st.sampled_from(["z1", "z2", "d1$"])))
    return log.transactions


def _parent() -> GroupState:
    log = _founded()
    log.set(ADMIN, 2, "co_zA", "admin")
    log.set(ADMIN, 3, "co_zY", "writer")
    return judge(log, admin=ADMIN, co_id="co_zParent")


def _empty(parent: GroupState) -> GroupState:
    return GroupState("co_zGroup", None, lambda co_id: parent if co_id == "co_zParent" else "missing")


def _shape(state: GroupState) -> Any:
    entries = {key: [(entry.transaction, entry.trusted) for entry in each] for key, each in state.entries.items()}
    verdicts = {(item.transaction.session, item.transaction.index): item.refusal for item in state.verdicts}
    return verdicts, entries, state.parents, state.epochs(), state.latest, state.missing


@st.composite
def _arrivals(draw: st.DrawFn) -> tuple[list[Transaction], list[list[Transaction]]]:
    """Return a log, and its transactions in another order of arrival, divided into messages."""
    whole = draw(_logs())
    sessions: dict[str, list[Transaction]] = {}
    for item in whole:
        sessions.setdefault(item.session, []).append(item)
    arriving = []
    while sessions:
        session = draw(st.sampled_from(sorted(sessions)))
        arriving.append(sessions[session].pop(0))
        if not sessions[session]:
            del sessions[session]
    cuts = sorted(draw(st.sets(st.integers(0, len(arriving)))) | {0, len(arriving)})
    return whole, [arriving[start:end] for start, end in itertools.pairwise(cuts)]


@given(_arrivals())
def test_the_result_does_not_depend_on_the_order_of_arrival(
    arrivals: tuple[list[Transaction], list[list[Transaction]]],
) -> None:
    whole, messages = arrivals
    parent = _parent()
    expected = _empty(parent)
    validate_group(expected, whole, ADMIN)
    state = _empty(parent)
    validator, here = GroupValidator(state, ADMIN), list[Transaction]()
    for message in messages:
        here += message
        if validator.can_resume(message):
            validator.resume(message)
        else:
            state = _empty(parent)
            validator = GroupValidator(state, ADMIN)
            validator.resume(here)
    assert _shape(state) == _shape(expected)


@given(_logs())
def test_the_result_is_one_that_a_javascript_reader_may_have(log: list[Transaction]) -> None:
    """It takes the transactions in an order of arrival, each by the roles at that point."""
    parent = _parent()
    state = _empty(parent)
    validate_group(state, log, ADMIN)
    order = [verdict.transaction for verdict in state.verdicts if not verdict.transaction.inert]
    may_count = [item for item in log if not item.inert]
    for session in {item.session for item in may_count}:
        mine = [item for item in may_count if item.session == session]
        mine.sort(key=lambda item: (item.made_at, item.index))
        assert [item for item in order if item.session == session] == mine
    again = _empty(parent)
    one_by_one = GroupValidator(again, ADMIN)
    for item in order:
        again.cursor = item.made_at
        one_by_one.settle(one_by_one.judge(item))
    again.cursor = None
    one_by_one.resume([item for item in log if item.inert])
    assert _shape(again) == _shape(state)


@pytest.mark.parametrize("role", [None, "reader", "readerInvite"])
def test_strangers_and_invited_readers_cannot_make_a_millisecond_expensive(role: str | None) -> None:
    log = _founded()
    if role is not None:
        log.set(ADMIN, 2, EVE, role)
    for number in range(3000):
        tail = f"z{number % 100:02}"
        key = (EVE, f"writeKeyFor_{EVE}", f"key_z{number}_for_key_z0", f"co_z{tail}")[number % 4]
        log.set(EVE, 5, key, ("revoked", "reader")[number % 3 > 0], tail=tail)
    judged = 0
    real = GroupValidator.judge

    def counted(self: GroupValidator, transaction: Transaction) -> Ruling:
        nonlocal judged
        judged += 1
        return real(self, transaction)

    with patch.object(GroupValidator, "judge", counted):
        judge(log, admin=ADMIN)
    assert judged < 3 * len(log.transactions)
