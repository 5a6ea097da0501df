"""`reside user` at a running user manager, each command as a person types it."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pytest
from integration.users.conftest import permit
from support.eventually import eventually
from support.reside_command import Operator, operator_of

from reside.users.contract import READ_USERS

if TYPE_CHECKING:
    from pathlib import Path

    from support.alpha_cluster import AlphaCluster, Client

    from reside.replica import Context

pytestmark = pytest.mark.anyio


@pytest.fixture
async def operator(cluster: AlphaCluster, manager: Context, admin: Client, tmp_path: Path) -> Operator:
    """Return the operator of the administrator, who may read and manage users."""
    await permit(cluster, admin, admin, READ_USERS)
    await eventually(
        "the permission to read users",
        lambda: any(p.in_force and p.ref.name == READ_USERS for p in manager.rcb.permissions()),
        within=60,
    )
    endpoint = str(manager.node.account.profile["endpoints"]["internal"])
    return replace(operator_of(cluster, admin, tmp_path), others={"user-manager": endpoint})


async def test_a_user_is_added_renamed_given_sets_and_removed(cluster: AlphaCluster, operator: Operator) -> None:
    account = (await cluster.client("grace")).node.account_id
    user = partial(operator.reside, "user")
    await operator.reside("user", "add", "grace", account, "--reason", "joined the team")
    await operator.reside("user", "define", "night", "greeter/greet", "greeter/wave", "--reason", "on call")
    assert "user grace has night" in await operator.reside("user", "grant", "grace", "night", "--reason", "this week")
    assert "user grace is called hopper" in await operator.reside("user", "rename", "grace", "hopper")

    wide = await operator.reside("user", "list", "--wide")
    assert account in wide
    (listed,) = json.loads(await user("list", "--output", "json"))
    assert (listed["name"], listed["account"], list(listed["sets"])) == ("hopper", account, ["night"])
    assert listed["added"]["reason"] == "joined the team"
    sets = json.loads(await operator.reside("user", "sets", "--output", "json"))
    night = next(each for each in sets if each["name"] == "night")
    assert night["decided"]["reason"] == "on call"
    assert "greeter/greet, greeter/wave" in await operator.reside("user", "sets", "--wide")
    assert "set night" in await operator.reside("user", "permissions", "hopper", "--wide")

    assert "is assigned to hopper" in await operator.reside("user", "delete-set", "night", code=1)
    revoke = ("user", "revoke", "hopper", "night", "--reason", "the week is over")
    assert "user hopper does not have night any more" in await operator.reside(*revoke)
    assert "the set night is deleted" in await operator.reside("user", "delete-set", "night")
    assert "user hopper is removed" in await operator.reside("user", "remove", "hopper")
    assert json.loads(await user("list", "--output", "json")) == []
