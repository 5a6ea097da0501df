"""What is due to users: from sets and apart from sets; and how users change."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from reside.model.entities import Decision
from reside.model.errors import Conflict
from reside.model.permissions import Grant, PermissionRef
from reside.users import people
from reside.users.contract import MAX_PERMISSIONS, AddUser, OwnGrant, Permission, PermissionSet, User

MADE = Decision(by="co_zAdmin", at=1, reason="test")
ACCOUNT = "co_zUser111111111"


def permission(name: str, replica: int = 3, **params: Any) -> Permission:
    return Permission(replica=replica, contract="c", permission=name, params=params)


def named(name: str, *permissions: Permission) -> PermissionSet:
    return PermissionSet(name=name, permissions=permissions, decided=MADE)


def user(*permissions: Permission, sets: tuple[str, ...] = ()) -> User:
    own = tuple(OwnGrant(**p.model_dump(), decided=MADE) for p in permissions)
    return User(account=ACCOUNT, name="ada", added=MADE, sets=dict.fromkeys(sets, MADE), permissions=own)


def ref(name: str) -> PermissionRef:
    return PermissionRef(ACCOUNT, "c", name)


def test_nothing_is_due_to_a_removed_user_and_to_one_without_sets() -> None:
    assert people.due(None, {}) == {}
    assert people.due(user(), {}) == {}


def test_what_is_due_is_in_the_sets_of_the_user_and_apart_from_them() -> None:
    sets = {"a": named("a", permission("greet"), permission("read", replica=4))}
    found = people.due(user(permission("wave"), sets=("a", "gone")), sets)
    granted = Grant(granted=True)
    assert found == {3: {ref("greet"): granted, ref("wave"): granted}, 4: {ref("read"): granted}}


@given(st.permutations(["b", "c", "a"]))
def test_the_params_of_the_users_own_permission_apply_then_those_of_the_first_set(order: list[str]) -> None:
    sets = {name: named(name, permission("greet", of=name)) for name in order}
    found = people.due(user(sets=tuple(order)), sets)
    assert found[3][ref("greet")].params == {"of": "a"}
    found = people.due(user(permission("greet", of="own"), sets=tuple(order)), sets)
    assert found[3][ref("greet")].params == {"of": "own"}


def test_holdings_name_every_source() -> None:
    sets = {name: named(name, permission("greet")) for name in ("b", "a")}
    ((found, sources),) = people.holdings(user(permission("greet"), sets=("b", "a")), sets)
    assert found.permission == "greet"
    assert sources == ("granted", "set a", "set b")


def test_a_second_assignment_keeps_the_first_decision() -> None:
    later = Decision(by="co_zOther", at=2)
    assert people.assigned(user(sets=("a",)), "a", later) == user(sets=("a",))
    assert people.assigned(user(), "a", later).sets == {"a": later}


def test_what_a_user_does_not_have_can_not_be_taken() -> None:
    with pytest.raises(Conflict, match="user ada does not have the set b; it has a"):
        people.unassigned(user(sets=("a",)), "b")
    with pytest.raises(Conflict, match="user ada has no greet apart from sets"):
        people.revoked(user(sets=("a",)), permission("greet"))


def test_a_permission_is_given_once_and_its_params_are_replaced() -> None:
    once = people.granted(user(), permission("greet", n=1), MADE)
    assert people.granted(once, permission("greet", n=1), Decision(by="co_zOther", at=9)) is once
    twice = people.granted(once, permission("greet", n=2), MADE)
    assert [p.params for p in twice.permissions] == [{"n": 2}]
    assert people.revoked(twice, permission("greet")) == user()


def test_a_user_has_a_limited_number_of_permissions_apart_from_sets() -> None:
    full = user(*(permission(f"p{number}") for number in range(MAX_PERMISSIONS)))
    with pytest.raises(Conflict, match="define a set"):
        people.granted(full, permission("one-more"), MADE)


def test_a_set_names_a_permission_once() -> None:
    with pytest.raises(Conflict, match="permission greet of replica 3 is in the set twice"):
        people.without_duplicates([permission("greet"), permission("greet", n=1)])


@pytest.mark.parametrize("name", ["", "a b", "co_zAda", "-ada", "a\n", "x" * 65, "ada\u202e"])
def test_names_that_could_be_mistaken_are_refused(name: str) -> None:
    with pytest.raises(ValidationError):
        AddUser(account="co_z" + "a" * 24, name=name)


@pytest.mark.parametrize("name", ["ada", "Ädä", "ada.l+test@example.org", "7"])
def test_ordinary_names_are_accepted(name: str) -> None:
    assert AddUser(account="co_z" + "a" * 24, name=name).name == name
