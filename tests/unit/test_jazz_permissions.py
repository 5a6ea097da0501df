"""Which transactions of a group and of its values count."""

from typing import Any

import pytest
from support.jazz_logs import Log, judge, refusals

from reside.jazz.group_state import GroupState
from reside.jazz.permissions import refusal_of_write

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


def test_a_revoked_initial_admin_cannot_begin_again() -> None:
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
def test_everybody_may_leave(role: str) -> None:
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
    assert _last(log) == "private transactions don't count in groups"


def test_changes_that_are_no_json_do_not_count() -> None:
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


def test_roles_hold_from_their_time_on() -> None:
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
    """A demotion that arrives late still comes first; ties of time are settled by session, on every reader alike."""
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


def test_a_parent_that_is_not_there_gives_nothing_and_is_asked_for() -> None:
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


def test_everyones_role_is_for_those_without_another() -> None:
    log = _group(Bob="reader")
    log.set(ADMIN, 10, "everyone", "writer")
    state = judge(log, admin=ADMIN)
    assert state.role_of(BOB) == "reader"
    assert state.role_of(EVE) == "writer"
    log.set(ADMIN, 11, "everyone", "revoked")
    assert judge(log, admin=ADMIN).role_of(EVE) is None
