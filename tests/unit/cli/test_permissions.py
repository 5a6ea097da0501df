"""`reside permission`: names on the command line, and the explanation of a permission."""

from __future__ import annotations

from typing import Any

import pytest

from reside.cli.grantees import Names, find_user_manager, parse_params
from reside.cli.permissions import explained
from reside.cli.users import permission_of
from reside.model.errors import InvalidInput
from reside.users.contract import USER_MANAGER_CONTRACT, USER_MANAGER_IDENTITY

GREETER, CALLER, ME = "co_zGreeter111", "co_zCaLLer1111", "co_zMe11111111"
NAMES = Names(
    [
        {"id": 3, "name": "greeter", "account": GREETER, "implements": ["r/greeting.v1"]},
        {"id": 4, "name": "caller", "account": CALLER, "implements": []},
        {"id": 5, "name": "both", "account": "co_zBoth111111", "implements": ["r/a.v1", "r/b.v1"]},
    ],
    {"me": ME, "caller": "co_zMine111111"},
)


def test_an_account_is_named_by_replica_by_own_account_or_by_id() -> None:
    assert NAMES.account("greeter") == GREETER
    assert NAMES.account("me") == ME
    assert NAMES.account(CALLER) == CALLER
    found = [NAMES.name_of(account) for account in (GREETER, ME, "co_zOther11111")]
    assert found == ["greeter", "me", "co_zOther11111"]
    with pytest.raises(InvalidInput, match="no replica, none of your accounts"):
        NAMES.account("nobody")
    with pytest.raises(InvalidInput, match="name the account by its id"):
        NAMES.account("caller")


def test_an_account_is_named_as_a_user_too() -> None:
    names = Names(NAMES.replicas, NAMES.own, {"ada": "co_zAda1111111", "my-user": ME, "greeter": "co_zEve1111111"})
    assert names.account("ada") == "co_zAda1111111"
    assert [names.name_of(account) for account in ("co_zAda1111111", ME, GREETER)] == ["ada", "my-user", "greeter"]
    with pytest.raises(InvalidInput, match="name the account by its id"):
        names.account("greeter")


def test_only_the_shipped_user_manager_gives_names_to_accounts() -> None:
    """A replica of another identity that implements its contract could call an attacker by the name of a user."""
    rows = [
        {"name": "impostor", "identity": "registry.example/users", "implements": [USER_MANAGER_CONTRACT]},
        {"name": "um", "identity": USER_MANAGER_IDENTITY, "implements": [USER_MANAGER_CONTRACT]},
    ]
    assert find_user_manager(rows[:1]) is None
    assert find_user_manager(rows) == rows[1]


def test_a_permission_for_a_user_is_named_by_replica_and_permission() -> None:
    greet = {"replica": 3, "contract": "r/greeting.v1", "permission": "greet:a"}
    assert permission_of(NAMES, "greeter/greet:a") == greet | {"params": {}}
    assert permission_of(NAMES, 'greeter/greet:a={"x":"="}') == greet | {"params": {"x": "="}}
    for text in ("greeter", "/greet", "greeter/", "greeter/greet={"):
        with pytest.raises(InvalidInput):
            permission_of(NAMES, text)


def test_the_contract_is_needed_only_if_there_are_several() -> None:
    assert NAMES.order("greeter", None, "greet") == {"replica": 3, "contract": "r/greeting.v1", "permission": "greet"}
    assert NAMES.order("both", "r/b.v1", "b")["contract"] == "r/b.v1"
    for name, text in (("both", "--contract"), ("caller", "implements none"), ("other", "does not exist")):
        with pytest.raises(InvalidInput, match=text):
            NAMES.order(name, None, "greet")


def test_params_are_a_json_object() -> None:
    assert parse_params(None) == {}
    assert parse_params('{"room": "a"}') == {"room": "a"}
    for text in ("{", "[]", "1"):
        with pytest.raises(InvalidInput, match="--params is not"):
            parse_params(text)


def explanation(**members: Any) -> list[str]:
    return list(explained({"inForce": False, "expected": None, "current": None, "sources": [], **members}))


def test_a_permission_is_explained() -> None:
    granted, refused = {"granted": True, "params": {}}, {"granted": False, "params": {}}
    static = {"type": "static", "replica": "caller", "version": 2, "requirement": "greeting"}
    manual = {"type": "manual", "status": "approved", "decided": {"by": ME, "at": 0, "reason": "on call"}}
    assert explanation() == ["not granted"]
    assert explanation(inForce=True, expected=granted, sources=[static, manual]) == [
        "in force",
        "required by version 2 of caller, requirement greeting",
        f"approved (manual) by {ME} at 1970-01-01 00:00:00Z: on call",
    ]
    assert explanation(expected=granted, sources=[static])[0].startswith("not in force yet")
    assert explanation(expected=refused, current=granted)[1].startswith("revoked; the replica has not")
    assert explanation(inForce=True, expected=granted)[1].startswith("written into the control block")


@pytest.mark.parametrize(
    ("members", "line"),
    [
        ({"isDefined": True}, "not granted"),
        ({}, "not granted"),  # an Alpha of an earlier release
        ({"isDefined": False}, "not granted, and the contract has no such permission: check the name"),
    ],
)
def test_a_mistyped_permission_is_told_from_one_that_is_not_granted(members: dict[str, bool], line: str) -> None:
    found = {"inForce": False, "expected": None, "current": None, "sources": []} | members
    assert list(explained(found)) == [line]
