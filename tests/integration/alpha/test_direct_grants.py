"""Direct grants: by people, and for running replicas that ask; checked, recorded, kept by the sync, revoked."""

from __future__ import annotations

import json
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from support.alpha_cluster import HOST, Client
from support.eventually import eventually
from support.reside_command import operator_of

from reside.alpha.granting import direct
from reside.alpha.granting.control_blocks import opened
from reside.jazz import Credentials, Node
from reside.model.errors import Conflict, InvalidInput, LoadRefused, NotAllowed
from reside.model.permissions import Grant, PermissionRef

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from support.alpha_cluster import AlphaCluster, Servers

    from reside.model.entities import DirectGrant

pytestmark = pytest.mark.anyio

GREETING = f"{HOST}/contracts/greeting.v1"
TIMES = {"type": "object", "properties": {"times": {"type": "integer", "maximum": 9}}}


async def push_caller(servers: Servers, version: int, **params: Any) -> None:
    """Push a version of the caller, which requires `greet` with these params."""
    info = {"name": "caller", "class": "long-running", "exclusive": True, "scalable": True}
    titled = {"en": {"title": f"version {version}"}}
    required = {"greeting": {"identity": GREETING, "permissions": [{"name": "greet", "params": params}]}}
    await servers.push(
        f"examples/caller:v{version}", type="replica", info=info, displayInfo=titled, requirements=required
    )


@pytest.fixture
async def loaded(servers: Servers, admin: Client) -> None:
    """Load the greeter, and a caller that may greet."""
    permissions = {"greet": {"params": TIMES}, "room": {"instanceKeys": ["room"]}, "wave": {}}
    await servers.push("contracts/greeting.v1", type="contract", permissions=permissions, methods={"greet": {}})
    info = {"name": "greeter", "class": "long-running", "exclusive": True, "scalable": True}
    implementations = {"greeting": {"identity": GREETING}}
    await servers.push("examples/greeter:v1", type="replica", info=info, implementations=implementations)
    await push_caller(servers, 1, times=1)
    await admin.load("examples/greeter:v1")
    await admin.load("examples/caller:v1")


async def body(cluster: AlphaCluster, account: str, permission: str, **members: Any) -> dict[str, Any]:
    """Return the body of a call about a permission that the greeter grants."""
    greeter = await cluster.replica("greeter")
    return {"account": account, "replica": greeter.id, "contract": GREETING, "permission": permission, **members}


async def expected(cluster: AlphaCluster, account: str) -> dict[str, dict[str, Any]]:
    """Return what the greeter is expected to grant to an account: name and instance → params."""
    return {
        ":".join(filter(None, (p.ref.name, p.ref.instance_id))): p.expected.params
        for p in await cluster.permissions("greeter")
        if p.ref.account == account and p.expected.granted
    }


async def is_expected(cluster: AlphaCluster, account: str, grants: dict[str, dict[str, Any]]) -> None:
    await eventually(f"{grants} to be due", partial(expected, cluster, account), lambda found: found == grants)


async def stored(cluster: AlphaCluster, account: str, permission: str) -> DirectGrant:
    found = await direct.read_all(cluster.alpha.data, account)
    return next(grant for grant in found.values() if grant.permission == permission)


@pytest.fixture
async def caller(cluster: AlphaCluster, loaded: None) -> AsyncIterator[Client]:
    """Yield a client with the account of the caller, as its pod has it."""
    del loaded
    replica = await cluster.replica("caller")
    assert replica.agent_secret is not None
    secret = await cluster.alpha.node.load_map(replica.agent_secret)
    credentials = Credentials.from_secret(str(secret["value"]))
    async with Node(cluster.servers.jazz.url, credentials) as node:
        yield Client(cluster, credentials, node)


@pytest.mark.usefixtures("loaded")
async def test_a_person_gets_a_permission_and_loses_it(cluster: AlphaCluster, admin: Client) -> None:
    user = await cluster.client("user")
    account, before = user.node.account_id, time.time() * 1000 - 60_000
    grant = await body(cluster, account, "greet", params={"times": 3}, reason="on call")
    await admin.call("grant-permission", grant)
    assert await expected(cluster, account) == {"greet": {"times": 3}}  # written when the call returns
    found = await stored(cluster, account, "greet")
    assert (found.request_type, found.status, found.asked) == ("manual", "approved", None)
    assert found.decided is not None
    assert (found.decided.by, found.decided.reason) == (admin.node.account_id, "on call")
    assert found.decided.at >= before
    own = await user.node.load_map(cluster.alpha.data.direct_grants[account])
    assert [value["permission"] for value in own.values()] == ["greet"]  # the grantee can read it
    await admin.call("grant-permission", await body(cluster, account, "room", params={"room": "a"}))
    assert await expected(cluster, account) == {"greet": {"times": 3}, "room:a": {"room": "a"}}
    await admin.call("revoke-permission", await body(cluster, account, "greet", reason="off duty"))
    assert await expected(cluster, account) == {"room:a": {"room": "a"}}
    assert (await stored(cluster, account, "greet")).status == "revoked"
    with pytest.raises(Conflict, match="no direct grant of greet"):
        await admin.call("revoke-permission", await body(cluster, account, "greet"))


@pytest.mark.usefixtures("loaded")
async def test_direct_grants_are_brought_back(cluster: AlphaCluster, admin: Client) -> None:
    """Whoever changed the entry, and also if that happened while no Alpha led."""
    account = (await cluster.client("user")).node.account_id
    await admin.call("grant-permission", await body(cluster, account, "wave"))
    greeter = await cluster.replica("greeter")
    for leads in (True, False):
        if not leads:
            await cluster.stop_leading()
        async with opened(cluster.alpha.node, greeter.control_block) as block:
            await block.set_expected(PermissionRef(account, GREETING, "wave"), Grant(granted=False))
        if not leads:
            assert await expected(cluster, account) == {}
            cluster.lead()
        await is_expected(cluster, account, {"wave": {}})


async def test_a_direct_grant_of_a_replica_outlives_its_versions(
    cluster: AlphaCluster, servers: Servers, admin: Client, caller: Client
) -> None:
    """Its params replace those of the versions; when it is revoked, those of the version that runs are due again."""
    account = caller.node.account_id
    await is_expected(cluster, account, {"greet": {"times": 1}})
    await admin.call("grant-permission", await body(cluster, account, "greet", params={"times": 5}))
    await admin.call("grant-permission", await body(cluster, account, "wave"))
    await push_caller(servers, 2, times=2)
    await admin.load("examples/caller:v2")
    await cluster.has_status("caller", "stopped", "running")
    await is_expected(cluster, account, {"greet": {"times": 5}, "wave": {}})
    sources = (await admin.call("explain-permission", await body(cluster, account, "greet")))["sources"]
    assert [(s["type"], s.get("version")) for s in sources] == [("static", 2), ("manual", None)]
    await admin.call("revoke-permission", await body(cluster, account, "greet"))
    await is_expected(cluster, account, {"greet": {"times": 2}, "wave": {}})


@pytest.mark.usefixtures("loaded")
async def test_a_grant_is_checked_like_a_requirement(cluster: AlphaCluster, admin: Client) -> None:
    user = await cluster.client("user")
    account = user.node.account_id
    wrong: tuple[tuple[dict[str, Any], type[Exception], str], ...] = (
        ({"permission": "grate"}, LoadRefused, "has no permission 'grate'"),
        ({"params": {"times": 10}}, LoadRefused, "10 is greater than"),
        ({"permission": "room"}, LoadRefused, "needs an instance"),
        ({"replica": 99}, InvalidInput, "replica 99 does not exist"),
        ({"contract": f"{HOST}/contracts/other.v1"}, InvalidInput, "does not implement"),
        ({"account": "co_z" + "1" * 40}, InvalidInput, "can't be found in this cluster"),
        ({"account": "admin"}, InvalidInput, "account"),
    )
    for members, kind, text in wrong:
        with pytest.raises(kind, match=text):
            await admin.call("grant-permission", await body(cluster, account, "greet") | members)
    for method in ("grant-permission", "revoke-permission", "approve-permission", "reject-permission"):
        with pytest.raises(NotAllowed, match="permission:manage:all"):
            await user.call(method, await body(cluster, account, "greet"))
    assert await direct.read_all(cluster.alpha.data, account) == {}


async def test_a_replica_asks_and_people_decide(cluster: AlphaCluster, admin: Client, caller: Client) -> None:
    account = caller.node.account_id
    asked = await body(cluster, account, "wave", reason="to say goodbye")
    del asked["account"]
    assert (await caller.call("request-permission", asked))["status"] == "pending"
    assert "wave" not in await expected(cluster, account)
    order = await body(cluster, account, "wave")
    with pytest.raises(Conflict, match="other params now"):
        await admin.call("approve-permission", order | {"params": {"times": 1}})
    await admin.call("approve-permission", order | {"reason": "fine"})
    await is_expected(cluster, account, {"greet": {"times": 1}, "wave": {}})
    assert (await caller.call("request-permission", asked))["status"] == "approved"
    found = await stored(cluster, account, "wave")
    assert (found.request_type, found.asked and found.asked.reason) == ("dynamic", "to say goodbye")
    await admin.call("revoke-permission", order)
    assert (await caller.call("request-permission", asked))["status"] == "revoked"
    await is_expected(cluster, account, {"greet": {"times": 1}})


async def test_a_refusal_is_remembered_until_people_grant_the_permission(
    cluster: AlphaCluster, admin: Client, caller: Client
) -> None:
    account = caller.node.account_id
    order = await body(cluster, account, "wave")
    asked = {key: value for key, value in order.items() if key != "account"}
    await caller.call("request-permission", asked)
    await admin.call("reject-permission", order | {"reason": "no need"})
    answer = await caller.call("request-permission", asked)
    assert (answer["status"], answer["decided"]["reason"]) == ("rejected", "no need")
    with pytest.raises(Conflict, match="has it as rejected"):
        await admin.call("approve-permission", order)
    await admin.call("grant-permission", order)
    await is_expected(cluster, account, {"greet": {"times": 1}, "wave": {}})


async def test_only_replicas_ask_and_not_without_limit(cluster: AlphaCluster, admin: Client, caller: Client) -> None:
    asked = await body(cluster, "", "room")
    del asked["account"]
    with pytest.raises(NotAllowed, match="only replicas"):
        await admin.call("request-permission", asked | {"params": {"room": "a"}})
    for room in range(32):
        await caller.call("request-permission", asked | {"params": {"room": str(room)}})
    with pytest.raises(Conflict, match="32 permissions wait"):
        await caller.call("request-permission", asked | {"params": {"room": "one more"}})
    await caller.call("request-permission", asked | {"params": {"room": "0"}})  # it waits already


async def test_a_permission_is_explained(cluster: AlphaCluster, admin: Client, caller: Client) -> None:
    order = await body(cluster, caller.node.account_id, "greet")
    await is_expected(cluster, caller.node.account_id, {"greet": {"times": 1}})
    found = await caller.call("explain-permission", order)
    assert found["expected"] == {"granted": True, "params": {"times": 1}}
    assert found["inForce"] is False  # no pod of the greeter runs
    static = {"type": "static", "replica": "caller", "version": 1, "requirement": "greeting"}
    assert [source | static for source in found["sources"]] == found["sources"]
    unknown = await admin.call("explain-permission", order | {"permission": "wave"})
    nothing = {"inForce": False, "expected": None, "current": None, "sources": []}
    assert unknown == nothing | {"isDefined": True}
    mistyped = await admin.call("explain-permission", order | {"permission": "weave"})
    assert mistyped == nothing | {"isDefined": False}
    stranger = await cluster.client("stranger")
    with pytest.raises(NotAllowed):
        await stranger.call("explain-permission", order)


async def test_the_command_names_contract_instance_and_params(
    cluster: AlphaCluster, admin: Client, caller: Client, tmp_path: Path
) -> None:
    operator = operator_of(cluster, admin, tmp_path)
    account = caller.node.account_id
    red = ("caller", "greeter", "room", "--contract", GREETING, "--instance", "red")
    await operator.reside("permission", "grant", *red[:-2], "--params", '{"room": "red"}')
    await is_expected(cluster, account, {"greet": {"times": 1}, "room:red": {"room": "red"}})
    explained = json.loads(await operator.reside("permission", "explain", *red, "--output", "json"))
    assert explained["expected"] == {"granted": True, "params": {"room": "red"}}
    await operator.reside("permission", "revoke", *red)
    await is_expected(cluster, account, {"greet": {"times": 1}})

    for room in ("blue", "black"):
        order = await body(cluster, account, "room", params={"room": room})
        await caller.call("request-permission", {key: value for key, value in order.items() if key != "account"})
    pending = json.loads(await operator.reside("permission", "list", "--pending", "--output", "json"))
    assert sorted(each["permission"] for each in pending) == ["room:black", "room:blue"]
    room = ("caller", "greeter", "room", "--contract", GREETING, "--instance")
    await operator.reside("permission", "reject", *room, "black", "--reason", "closed")
    asked = ("--params", '{"room": "blue"}', "--reason", "open")
    await operator.reside("permission", "approve", *room, "blue", *asked)
    await is_expected(cluster, account, {"greet": {"times": 1}, "room:blue": {"room": "blue"}})
    listed = await operator.reside("permission", "list", "--all", "--wide")
    assert '{"room": "blue"}' in listed or "{'room': 'blue'}" in listed
    assert "closed" in listed
