"""Which transactions of a group and of its values count."""

from typing import Any

import pytest
from unit.jazz.logs import Log, judge, refusals

from reside.jazz.rules.group_state import Entry, GroupState
from reside.jazz.rules.permissions import refusal_of_write, validate_group

ADMIN, BOB, EVE = "co_zAdmin", "co_zBob", "co_zEve"
ROLES = ["admin", "manager", "writer", "reader", "writeOnly"]
INVITES = ["adminInvite", "managerInvite", "writerInvite", "readerInvite", "writeOnlyInvite"]


def _group(**roles: str) -> Log:
    log = Log()
    log.set(ADMIN, 1, ADMIN, "admin")
    for number, (member, role) in enumerate(roles.items()):
        log.set(ADMIN, 2 + number, f"co_z{member}", role)
    return log


def _last(log: Log, **arguments: Any) -> str | None:
    return refusals(judge(log, admin=ADMIN, **arguments))[-1]


def test_only_the_initial_admin_makes_itself_admin() -> None:
    log = Log()
    log.set(EVE, 1, EVE, "admin")
    log.set(ADMIN, 2, ADMIN, "admin")
    state = judge(log, admin=ADMIN)
    assert [refusal is None for refusal in refusals(state)] == [False, True]
    assert state.role_of(EVE) is None
    assert state.role_of(ADMIN) == "admin"


@pytest.mark.parametrize("change", [None, 1, {}, {"op": "set"}, {"op": "set", "key": 1, "value": "admin"}])
def test_a_change_that_sets_no_key_does_not_count(change: Any) -> None:
    log = _group(Bob="writer")
    log.add(EVE, 10, [change])
    log.add(ADMIN, 11, [change])
    state = judge(log, admin=ADMIN)
    assert [why is None for why in refusals(state)] == [True, True, False, False]
    assert state.role_of(BOB) == "writer"


def test_a_revoked_initial_admin_cannot_make_itself_admin_again() -> None:
    log = _group()
    log.set(ADMIN, 10, ADMIN, "revoked")
    log.set(ADMIN, 11, ADMIN, "admin")
    assert _last(log) is not None


@pytest.mark.parametrize("role", [*ROLES, *INVITES, "revoked", None])
def test_only_admins_and_managers_change_keys_and_parents(role: str | None) -> None:
    for key in ("readKey", "groupSealer", "profile", "root"):
        log = _group(**({"Bob": role} if role else {}))
        log.set(BOB, 10, key, "value")
        assert (_last(log) is None) == (role in ("admin", "manager"))
    log = _group(**({"Bob": role} if role else {}))
    log.set(BOB, 10, "key_z1_for_co_zEve", "sealed")
    assert (_last(log) is None) == (role in ("admin", "manager") or role in INVITES)


@pytest.mark.parametrize(
    ("by", "affected", "assigned", "allowed"),
    [
        ("admin", "admin", "reader", False),
        ("admin", "writer", "admin", True),
        ("admin", None, "owner", False),
        ("admin", None, 7, False),
        ("admin", None, {"role": "admin"}, False),
        ("manager", "admin", "revoked", False),
        ("manager", "manager", "reader", True),
        ("manager", None, "manager", True),
        ("manager", None, "admin", False),
        ("manager", None, "adminInvite", False),
        ("manager", None, "managerInvite", False),
        ("writer", None, "reader", False),
        ("reader", None, "reader", False),
        ("writeOnly", None, "writeOnly", False),
        (None, None, "reader", False),
        ("writerInvite", None, "writer", True),
        ("writerInvite", None, "admin", False),
        ("readerInvite", None, "reader", True),
        ("adminInvite", None, "admin", True),
        ("managerInvite", None, "manager", True),
        ("managerInvite", None, "admin", False),
        ("writeOnlyInvite", None, "writeOnly", True),
        ("writeOnlyInvite", None, "reader", False),
    ],
)
def test_who_gives_which_role(by: str | None, affected: str | None, assigned: Any, allowed: bool) -> None:
    roles = {name: role for name, role in (("Bob", by), ("Eve", affected)) if role is not None}
    log = _group(**roles)
    log.set(BOB, 10, EVE, assigned)
    assert (_last(log) is None) == allowed


@pytest.mark.parametrize("role", [*ROLES, *INVITES])
def test_every_member_may_leave(role: str) -> None:
    log = _group(Bob=role)
    log.set(BOB, 10, BOB, "revoked")
    assert _last(log) is None


@pytest.mark.parametrize(("role", "allowed"), [(role, role in ("reader", "writer", "writeOnly")) for role in ROLES])
def test_everyone_gets_the_lesser_roles_only(role: str, allowed: bool) -> None:
    log = _group()
    log.set(ADMIN, 10, "everyone", role)
    assert (_last(log) is None) == allowed


@pytest.mark.parametrize(
    "changes",
    [
        [],
        [{"op": "set", "key": BOB, "value": "reader"}, {"op": "set", "key": EVE, "value": "reader"}],
        [{"op": "del", "key": BOB}],
        [{"op": "set", "value": "reader"}],
        ["set"],
        [{"op": "set", "key": "child_co_zX", "value": "extend"}],
    ],
)
def test_a_groups_transaction_sets_exactly_one_key(changes: list[Any]) -> None:
    log = _group()
    log.add(ADMIN, 10, changes)
    assert _last(log) is not None


def test_private_transactions_do_not_count_in_groups() -> None:
    log = _group()
    log.add(ADMIN, 10, [{"op": "set", "key": BOB, "value": "admin"}], private=True)
    assert _last(log) == "private transactions are invalid in groups"


def test_changes_that_are_not_json_do_not_count() -> None:
    log = _group()
    item = log.set(ADMIN, 10, BOB, "admin")
    item.payload, item.changes = "{", None
    assert _last(log) is not None


def test_a_write_only_member_reveals_its_own_write_key_only() -> None:
    log = _group(Bob="writeOnly", Eve="writeOnly")
    log.set(BOB, 10, f"writeKeyFor_{BOB}", "key_zBob")
    log.set(BOB, 11, f"key_zBob_for_{ADMIN}", "sealed")
    log.set(EVE, 12, f"key_zBob_for_{EVE}", "sealed")
    log.set(EVE, 13, f"writeKeyFor_{BOB}", "key_zEve")
    log.set(BOB, 14, f"writeKeyFor_{BOB}", "key_zOther")
    log.set(ADMIN, 15, f"writeKeyFor_{BOB}", "key_zNew")
    state = judge(log, admin=ADMIN)
    assert [refusal is None for refusal in refusals(state)[3:]] == [True, True, False, False, False, True]


def test_roles_are_valid_from_their_time_on() -> None:
    log = _group()
    log.set(ADMIN, 100, BOB, "writer")
    log.set(ADMIN, 200, BOB, "reader")
    log.set(ADMIN, 300, BOB, "revoked")
    state = judge(log, admin=ADMIN)
    assert [state.role_of(BOB, at) for at in (99, 100, 199, 200, 299, 300)] == [
        None,
        "writer",
        "writer",
        "reader",
        "reader",
        None,
    ]
    writes = Log()
    made = [writes.add(BOB, at, []) for at in (99, 100, 199, 200)]
    assert [refusal_of_write(state, item) is None for item in made] == [False, True, True, False]


def test_the_order_is_by_time_whatever_arrived_first() -> None:
    """A demotion that arrives late is still applied first. Equal times are ordered by session, for every reader."""
    log = _group(Bob="admin")
    log.set(BOB, 20, EVE, "admin")
    log.set(BOB, 10, BOB, "revoked")
    assert judge(log, admin=ADMIN).role_of(EVE) is None
    for first, second in ((ADMIN, BOB), (BOB, ADMIN)):
        tied = _group(Bob="admin")
        for author, role in ((first, f"{first}"), (second, f"{second}")):
            tied.set(author, 50, EVE, "writer" if role == ADMIN else "reader")
        assert judge(tied, admin=ADMIN).role_of(EVE) == "reader"


@pytest.mark.parametrize("mapping", ["extend", "reader", "writer", "manager", "admin"])
@pytest.mark.parametrize("role", [*ROLES, "readerInvite"])
def test_a_parents_members_are_members(mapping: str, role: str) -> None:
    parent = judge(_group(Bob=role), admin=ADMIN, co_id="co_zParent")
    log = _group()
    log.set(ADMIN, 10, "parent_co_zParent", mapping)
    state = judge(log, admin=ADMIN, groups={"co_zParent": parent})
    inherited = (role if mapping == "extend" else mapping) if role in ("admin", "manager", "writer", "reader") else None
    assert state.role_of(BOB) == inherited
    assert state.role_of(BOB, 9) is None


def _parents(**arguments: Any) -> dict[str, GroupState]:
    return {"co_zParent": judge(_group(**arguments), admin="co_zAdmin", co_id="co_zParent")}


def test_the_higher_of_direct_and_inherited_role_counts() -> None:
    for direct, above, expected in (
        ("writeOnly", "writer", "writer"),
        ("reader", "admin", "admin"),
        ("admin", "reader", "admin"),
        ("writeOnly", "reader", "writeOnly"),
        ("revoked", "reader", "reader"),
    ):
        log = _group(Bob=direct)
        log.set(ADMIN, 10, "parent_co_zParent", "extend")
        assert judge(log, admin=ADMIN, groups=_parents(Bob=above)).role_of(BOB) == expected


def test_a_parents_admin_acts_in_the_child_and_a_parents_reader_does_not() -> None:
    for role, allowed in (("admin", True), ("manager", True), ("reader", False), ("writer", False)):
        log = _group()
        log.set(ADMIN, 10, "parent_co_zParent", "extend")
        log.set(BOB, 11, EVE, "reader")
        assert (_last(log, groups=_parents(Bob=role)) is None) == allowed


def test_an_extension_can_be_revoked() -> None:
    log = _group()
    log.set(ADMIN, 10, "parent_co_zParent", "extend")
    log.set(ADMIN, 20, "parent_co_zParent", "revoked")
    state = judge(log, admin=ADMIN, groups=_parents(Bob="writer"))
    assert [state.role_of(BOB, at) for at in (10, 19, 20, None)] == ["writer", "writer", None, None]
    assert state.parent_ids() == []


def test_a_missing_parent_gives_no_role_and_is_loaded() -> None:
    log = _group()
    log.set(BOB, 9, "parent_co_zElsewhere", "extend")
    log.set(ADMIN, 10, "parent_co_zParent", "extend")
    log.set(ADMIN, 11, "parent_no id", "extend")
    state = judge(log, admin=ADMIN)
    assert state.missing == {"co_zParent"}
    assert state.role_of(BOB) is None


def test_a_public_parent_makes_its_child_public() -> None:
    parent = _group()
    parent.set(ADMIN, 5, "everyone", "reader")
    log = _group()
    log.set(ADMIN, 10, "parent_co_zParent", "extend")
    state = judge(log, admin=ADMIN, groups={"co_zParent": judge(parent, admin=ADMIN, co_id="co_zParent")})
    assert state.role_of(EVE) == "reader"


def test_the_role_of_everyone_applies_to_accounts_without_another() -> None:
    log = _group(Bob="reader")
    log.set(ADMIN, 10, "everyone", "writer")
    state = judge(log, admin=ADMIN)
    assert state.role_of(BOB) == "reader"
    assert state.role_of(EVE) == "writer"
    log.set(ADMIN, 11, "everyone", "revoked")
    assert judge(log, admin=ADMIN).role_of(EVE) is None


@pytest.mark.parametrize("mapping", ["writeOnly", "adminInvite", "nonsense", "", None, 7])
def test_an_extension_with_a_role_that_members_can_not_have_gives_none(mapping: Any) -> None:
    """As in JavaScript, such a mapping replaces an earlier one, so it takes the roles of the parent away."""
    log = _group()
    log.set(ADMIN, 10, "parent_co_zParent", "extend")
    log.set(ADMIN, 20, "parent_co_zParent", mapping)
    state = judge(log, admin=ADMIN, groups=_parents(Bob="admin"))
    assert refusals(state)[-1] is None
    assert [state.role_of(BOB, at) for at in (9, 19, 20)] == [None, "admin", None]


def test_an_extension_with_the_role_of_an_invite_acts_as_an_invite() -> None:
    """A quirk of JavaScript that verdicts depend on: such members have no role, but may do what the invite may."""
    log = _group()
    log.set(ADMIN, 10, "parent_co_zParent", "writerInvite")
    log.set(BOB, 20, EVE, "writer")
    log.set(BOB, 21, EVE, "admin")
    state = judge(log, admin=ADMIN, groups=_parents(Bob="reader"))
    assert [refusal is None for refusal in refusals(state)[-2:]] == [True, False]


def test_an_extension_without_a_value_ends_it() -> None:
    log = _group()
    log.set(ADMIN, 10, "parent_co_zParent", "extend")
    log.add(ADMIN, 20, [{"op": "set", "key": "parent_co_zParent"}])
    state = judge(log, admin=ADMIN, groups=_parents(Bob="admin"))
    assert state.role_of(BOB) is None
    assert state.parent_ids() == []


def test_a_key_without_a_name_has_no_owner() -> None:
    log = _group(Bob="writeOnly")
    log.set(BOB, 10, f"writeKeyFor_{BOB}", "")
    log.set(BOB, 11, "_for_everyone", "keySecret_z1")
    log.set(BOB, 12, "_for_everyone_sealedFor_sealer_z1", "keySecret_z1")
    assert [refusal is None for refusal in refusals(judge(log, admin=ADMIN))[-3:]] == [True, False, False]


def test_reveals_count_only_from_members_who_may_reveal_the_key() -> None:
    """An author may declare that the read key is its own and reveal it, like any key of its own, without effect."""
    log = _group(Bob="readerInvite", Eve="writeOnlyInvite")
    log.set(ADMIN, 10, "readKey", "key_z1")
    name = f"key_z1_for_{ADMIN}"
    log.set(ADMIN, 11, name, "by admin")
    log.set(EVE, 12, name, "by a writer's invite")
    log.set("co_zStranger", 13, "writeKeyFor_co_zStranger", "key_z1")
    log.set("co_zStranger", 14, name, "by a stranger")
    state = judge(log, admin=ADMIN)
    assert all(refusal is None for refusal in refusals(state))
    entry = state.reveal(name, "key_z1")
    assert entry is not None
    assert entry.value == "by admin"
    log.set(BOB, 15, name, "by a reader's invite")
    later = judge(log, admin=ADMIN).reveal(name, "key_z1")
    assert later is not None
    assert later.value == "by a reader's invite"
    log.set("co_zStranger", 16, "writeKeyFor_co_zStranger", "key_z2")
    log.set("co_zStranger", 17, f"key_z2_for_{ADMIN}", "its own")
    own = judge(log, admin=ADMIN).reveal(f"key_z2_for_{ADMIN}", "key_z2")
    assert own is not None
    assert own.value == "its own"


def test_a_reader_may_write_pointers_to_its_branches_and_nothing_else() -> None:
    state = judge(_group(Bob="reader"), admin=ADMIN)
    writes = Log()
    for meta in ('{"branch":"b","ownerId":"co_zX","fww":"k"}', '{"branch":"b"}', "{", "[]", None):
        item = writes.add(BOB, 20, [{"op": "set", "key": "x", "value": 1}])
        item.meta = meta
    assert [refusal_of_write(state, item) is None for item in writes.transactions] == [True, *[False] * 4]
    assert writes.transactions[0].changes == []
    assert writes.transactions[0].meta_value == {"branch": "b", "ownerId": "co_zX"}


def test_groups_that_extend_each_other_by_back_dating_give_each_role_once() -> None:
    """Each extension was valid while the other was not, and both remain in the past; roles do not accumulate."""
    states: dict[str, GroupState] = {}
    names = [f"co_zGroup{number}" for number in range(12)]
    for name in names:
        state = GroupState(name, None, lambda parent: states.get(parent, "missing"))
        log = _group(**({"Bob": "writer"} if name == names[-1] else {}))
        validate_group(state, log.transactions, ADMIN)
        states[name] = state
    for name in names:
        for parent in names:
            if parent != name:
                states[name].parents[parent] = [(10, "extend"), (50, "revoked")]
                states[name].add(f"parent_{parent}", Entry(10, "extend", log.transactions[0]))
        states[name].add(f"parent_{names[0]}", Entry(50, "revoked", log.transactions[0]))
    for state in states.values():
        state.forget_roles(0)
    assert {state.role_of(BOB, 20) for state in states.values()} == {"writer"}
    assert {state.role_of(EVE, 20) for state in states.values()} == {None}
    assert [state.role_of(BOB, 60) for state in states.values()] == [None] * 11 + ["writer"]


def test_a_chain_of_many_groups_needs_no_recursion() -> None:
    states: dict[str, GroupState] = {}
    names = ["co_zGroup" + str(number).replace("0", "o") for number in range(1500)]
    for above, name in zip([None, *names], names, strict=False):
        log = _group(**({} if above else {"Bob": "writer"}))
        state = GroupState(name, None, lambda parent: states.get(parent, "missing"))
        validate_group(state, log.transactions, ADMIN)
        if above is not None:
            state.parents[above] = [(10, "extend")]
            state.add(f"parent_{above}", Entry(10, "extend", log.transactions[0]))
        states[name] = state
    last = states[names[-1]]
    last.forget_roles(0)
    assert last.role_of(BOB) == "writer"
    assert last.role_of(BOB, 9) is None
    assert last.extends(names[0])
