"""A running replica waits for permissions and asks for them: SDK, Alpha and the granting replica together."""

from __future__ import annotations

import asyncio
import json
from asyncio import subprocess
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import httpx2
import pytest
from integration.alpha.test_system_load import push_system
from support.alpha_cluster import HOST, AlphaCluster, Client, Servers, alpha_cluster
from support.eventually import eventually
from support.replicas import variables

from reside.alpha import bootstrap
from reside.jazz import Credentials
from reside.model.constants import ALPHA_CONTRACT
from reside.model.errors import NotAllowed, NotReady
from reside.model.manifest import ContractManifest
from reside.replica import Call, Replica, ReplicaSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from support.typescript import TypeScript

    from reside.replica import Context, Json

pytestmark = pytest.mark.anyio

GREETING = f"{HOST}/contracts/greeting.v1"
CONTRACT = ContractManifest.model_validate(
    {
        "type": "contract",
        "identity": GREETING,
        "permissions": {"greet": {}, "wave": {}, "room": {"instanceKeys": ["room"]}},
        "methods": {"greet": {}},
    }
)


def build_greeter() -> Replica:
    greeter = Replica(CONTRACT)

    @greeter.method(GREETING, "greet")
    async def greet(call: Call) -> Json:
        call.require("greet")
        return "hello"

    return greeter


@asynccontextmanager
async def running(cluster: AlphaCluster, replica: Replica, name: str, account: Credentials) -> AsyncIterator[Context]:
    """Run a loaded replica in this process."""
    async with replica.start(await settings_of(cluster, name, account)) as context:
        yield context


async def settings_of(cluster: AlphaCluster, name: str, account: Credentials) -> ReplicaSettings:
    """Return the settings of a loaded replica."""
    return ReplicaSettings(**cluster.servers.members(account, (await cluster.replica(name)).control_block, name))


@pytest.fixture(scope="module")
async def cluster(servers: Servers) -> AsyncIterator[AlphaCluster]:
    async with alpha_cluster(servers, repository=f"{HOST}/acme") as made:
        yield made


@pytest.fixture(scope="module")
async def admin(cluster: AlphaCluster) -> Client:
    return await cluster.admin()


@pytest.fixture(scope="module")
async def report(cluster: AlphaCluster, servers: Servers, admin: Client) -> AsyncIterator[Context]:
    """Run a greeter, and a replica that requires it and Alpha, but no permission."""
    made: list[Credentials] = []
    real = Credentials.generate

    def record() -> Credentials:
        made.append(real())
        return made[-1]

    await bootstrap.load_system(cluster.alpha, await push_system(servers))
    declared: dict[str, Any] = CONTRACT.model_dump(mode="json", by_alias=True, include={"permissions", "methods"})
    await servers.push("contracts/greeting.v1", type="contract", **declared)
    info = {"class": "long-running", "exclusive": True, "scalable": True}
    served = {"greeting": {"identity": GREETING}}
    await servers.push("examples/greeter:v1", type="replica", info={"name": "greeter"} | info, implementations=served)
    required = {"greeting": {"identity": GREETING}, "alpha": {"identity": ALPHA_CONTRACT}}
    await servers.push("examples/report:v1", type="replica", info={"name": "report"} | info, requirements=required)
    with patch.object(Credentials, "generate", record):
        for name in ("greeter", "report"):
            await admin.load(f"examples/{name}:v1")
    await cluster.has_status("report", "running")
    accounts = {c.account_id: c for c in made}
    greeter, report = await cluster.replica("greeter"), await cluster.replica("report")
    async with (
        running(cluster, build_greeter(), "greeter", accounts[greeter.account]),
        running(cluster, Replica(), "report", accounts[report.account]) as context,
    ):
        yield context


async def order(cluster: AlphaCluster, permission: str, **members: Any) -> dict[str, Any]:
    """Return the body of a call about a permission that the greeter grants to the other one."""
    greeter, report = await cluster.replica("greeter"), await cluster.replica("report")
    body = {"account": report.account, "replica": greeter.id, "contract": GREETING, "permission": permission}
    return body | members


async def pending(cluster: AlphaCluster, admin: Client, permission: str) -> None:
    """Wait until a permission waits for a decision."""
    body = await order(cluster, permission)

    async def look() -> list[str]:
        sources = (await admin.call("explain-permission", body))["sources"]
        return [source["status"] for source in sources]

    await eventually(f"{permission} to be pending", look, lambda seen: seen == ["pending"])


async def test_a_replica_that_starts_before_its_grant_waits_for_it(
    cluster: AlphaCluster, admin: Client, report: Context
) -> None:
    greeter = await report.peer("greeting")
    with pytest.raises(NotAllowed):
        await greeter.call("greet", {})
    assert await greeter.granted("greet") is None
    waiting = asyncio.create_task(greeter.until_granted("greet", within_s=60))
    await admin.call("grant-permission", await order(cluster, "greet", params={"loud": True}))
    assert await waiting == {"loud": True}
    assert await greeter.granted("greet") == {"loud": True}
    assert await greeter.call("greet", {}) == "hello"
    await admin.call("revoke-permission", await order(cluster, "greet"))

    async def is_gone() -> bool:
        return await greeter.granted("greet") is None

    await eventually("the grant to go", is_gone)


async def test_a_grant_that_does_not_come_in_time_is_an_error_with_the_cure(report: Context) -> None:
    greeter = await report.peer("greeting")
    with pytest.raises(NotReady, match=r"greeter has not granted wave of .*greeting.v1 within 0.2 s: see `reside perm"):
        await greeter.until_granted("wave", within_s=0.2)


async def test_a_replica_asks_and_goes_on_when_people_approve(
    cluster: AlphaCluster, admin: Client, report: Context
) -> None:
    greeter = await report.peer("greeting")
    asking = asyncio.create_task(report.ask(greeter, "wave", reason="to say goodbye", within_s=60))
    await pending(cluster, admin, "wave")
    await admin.call("approve-permission", await order(cluster, "wave"))
    assert await asking == {}
    assert await report.ask(greeter, "wave", within_s=10) == {}, "it has it"


async def test_a_replica_whose_request_is_refused_gets_the_reason_now_and_later(
    cluster: AlphaCluster, admin: Client, report: Context
) -> None:
    greeter = await report.peer("greeting")
    asking = asyncio.create_task(report.ask(greeter, "room", params={"room": "blue"}, within_s=60))
    body = await order(cluster, "room", instanceId="blue")

    async def look() -> list[str]:
        return [source["status"] for source in (await admin.call("explain-permission", body))["sources"]]

    await eventually("the request", look, lambda seen: seen == ["pending"])
    await admin.call("reject-permission", body | {"reason": "the blue room is closed"})
    with pytest.raises(NotAllowed, match="room of greeter was rejected: the blue room is closed"):
        await asking
    with pytest.raises(NotAllowed, match="the blue room is closed"):
        await report.ask(greeter, "room", params={"room": "blue"}, within_s=10)


async def test_a_replica_in_typescript_asks_and_takes_a_lock_as_the_user_that_alpha_has_made(
    cluster: AlphaCluster, admin: Client, report: Context, typescript: TypeScript
) -> None:
    async with httpx2.AsyncClient(trust_env=False) as http:
        stranger = await http.post(f"{cluster.servers.etcd.url}/v3/kv/range", json={"key": "AA=="})
    assert "user name is empty" in stranger.text
    settings = await settings_of(cluster, "report", report.credentials)
    process = await subprocess.create_subprocess_exec(
        *typescript.program("asker"), env={**variables(settings, 0), "CONTRACT": GREETING}, stdout=subprocess.PIPE
    )
    try:
        await decide(cluster, admin, "approve-permission", await order(cluster, "room", params={"room": "red"}), "red")
        refused = await order(cluster, "room", reason="it is closed")
        await decide(cluster, admin, "reject-permission", refused, "black")
        async with asyncio.timeout(90):
            out, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    lines = {line["event"]: line for line in map(json.loads, out.splitlines())}
    assert (process.returncode, lines["granted"]["params"]) == (0, {"room": "red"}), lines
    assert lines["granted"]["again"] == {"room": "red"}
    assert int(lines["locked"]["revision"]) > 0
    assert lines["refused"]["code"] == "not-allowed"
    assert "room of greeter was rejected: it is closed" in lines["refused"]["message"]


async def decide(cluster: AlphaCluster, admin: Client, method: str, body: dict[str, Any], room: str) -> None:
    """Decide on the permission for a room once it was asked for."""
    asked = await order(cluster, "room", instanceId=room)

    async def look() -> list[str]:
        return [source["status"] for source in (await admin.call("explain-permission", asked))["sources"]]

    await eventually(f"the request for {room}", look, lambda seen: seen == ["pending"], within=90)
    await admin.call(method, asked | body)
