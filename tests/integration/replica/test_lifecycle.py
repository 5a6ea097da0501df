"""Start and stop of a replica: account, profile and data; probes and metrics; errors and signals."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
from asyncio import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import httpx2
import pytest
from support.eventually import eventually
from support.ports import free_port
from support.replicas import GREETING, call, endpoint_of, environment, greeting_contract

from reside.jazz import CoMap, InvalidCredentials, Node, NodeClosed, fenced_writes
from reside.locks import LockService
from reside.model.errors import InvalidInput, NotAllowed
from reside.model.permissions import Grant, PermissionRef
from reside.replica import Context, Replica
from reside.replica.profile import load_contracts, load_profile

if TYPE_CHECKING:
    from support.replicas import AlphaDouble, Identity, Servers

    from reside.replica import Call, ReplicaSettings

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[3]


def build_greeter() -> Replica:
    replica = Replica(greeting_contract())

    @replica.data(GREETING)
    async def create(context: Context) -> CoMap:
        return await context.node.unique_map(context.public, "greetings", {"schema": 1})

    @replica.method(GREETING, "whoami")
    async def whoami(call: Call) -> str:
        return call.account

    @replica.method(GREETING, "greet")
    async def greet(call: Call) -> str:
        call.require("greet")
        return "hello"

    return replica


async def test_a_start_publishes_profile_and_data_and_a_second_start_writes_nothing(
    alpha_double: AlphaDouble, identity: Identity
) -> None:
    settings = identity.settings.model_copy(update={"internal_endpoint": "http://greeter"})
    async with build_greeter().start(settings) as context:
        data = context.data[GREETING].id
    async with Node(alpha_double.servers.jazz.url, await alpha_double.account("reader")) as reader:
        await reader.login()
        profile = await load_profile(reader, identity.credentials.account_id)
        assert profile.name == "greeter"
        assert profile.replica_id == identity.rcb.number
        assert profile.endpoints == {"internal": "http://greeter"}
        assert profile.contracts == {GREETING: data}
        assert (await reader.load_map(data))["schema"] == 1
    async with build_greeter().start(settings) as context:
        assert context.data[GREETING].id == data
        assert len(context.node.account.profile.history("endpoints")) == 1


async def test_a_profile_of_the_first_implementation_is_read(alpha_double: AlphaDouble) -> None:
    """It has its endpoints and contracts in maps of their own, as jazz-tools creates them from nested schemas."""
    async with Node(alpha_double.servers.jazz.url, await alpha_double.account("first")) as first:
        await first.login()
        profile = first.account.profile
        data = profile.group.create_map({"schema": 1})
        endpoints = profile.group.create_map({"internal": "http://first"})
        contracts = profile.group.create_map({GREETING: data.id})
        profile.update({"replicaId": 7, "endpoints": endpoints.id, "contracts": contracts.id})
        await first.flush()
        async with Node(alpha_double.servers.jazz.url, await alpha_double.account("reader")) as reader:
            await reader.login()
            found = await load_profile(reader, first.account_id)
            assert (found.endpoints, found.contracts) == ({"internal": "http://first"}, {GREETING: data.id})
            content = await (await reader.load_account(first.account_id)).load_profile()
            assert await load_contracts(reader, content) == {GREETING: data.id}


async def test_a_replica_ends_when_its_node_may_not_send_what_it_has_written(identity: Identity) -> None:
    """Its memory has writes that must not reach the server any more: only a new process starts without them."""
    lost: list[str] = []

    def check() -> None:
        if lost:
            raise ValueError("the lock is lost")

    async def write_and_wait(context: Context) -> None:
        with fenced_writes(check):
            context.data[GREETING].set("schema", 2)
        lost.append("now")
        async with asyncio.timeout(90):
            await asyncio.Event().wait()

    with pytest.raises(NodeClosed, match="writes were not sent in time: the lock is lost"):
        async with build_greeter().start(identity.settings) as context:
            await write_and_wait(context)
    async with build_greeter().start(identity.settings) as context:
        assert context.data[GREETING]["schema"] == 1


async def test_the_external_endpoint_in_the_control_block_is_published_without_a_restart(
    alpha_double: AlphaDouble, identity: Identity
) -> None:
    settings = identity.settings.model_copy(update={"external_endpoint": "https://of-the-pod.example.org"})
    async with build_greeter().start(settings) as context:

        def external() -> str | None:
            return context.node.account.profile["endpoints"].get("external")

        assert external() == "https://of-the-pod.example.org"
        for url in ("https://later.example.org", None):
            identity.rcb.set_external_endpoint(url)
            await alpha_double.node.flush()
            await eventually("the endpoint", external, lambda found, url=url: found == url)
    async with build_greeter().start(settings) as context:
        assert external() is None, "the control block is newer than the pod"


async def test_probes_and_metrics(identity: Identity) -> None:
    async with (
        build_greeter().start(identity.settings) as context,
        httpx2.AsyncClient(base_url=endpoint_of(context), trust_env=False) as http,
    ):
        assert (await http.get("/healthz")).status_code == 200
        assert (await http.get("/readyz")).json() == {"ready": True, "missing": []}
        context.health.draining = True
        unready = await http.get("/readyz")
        assert unready.status_code == 503
        assert unready.json() == {"ready": False, "missing": ["stopping"]}
        assert unready.headers["connection"] == "close"
        assert "reside_grants_pending" in (await http.get("/metrics")).text


async def test_a_replica_stays_ready_and_serves_while_its_sync_server_is_down(
    servers: Servers, alpha_double: AlphaDouble, identity: Identity
) -> None:
    """b5760d8: every replica became unready at once, so an outage of the sync server was one of every service."""
    alice, bob = await alpha_double.account("alice"), await alpha_double.account("bob")
    ref = PermissionRef(alice.account_id, GREETING, "greet")
    calling = await alpha_double.identity("calling")
    calling.rcb.set_requirements({"greeting": [identity.credentials.account_id]})
    await alpha_double.node.flush()
    async with (
        build_greeter().start(identity.settings) as context,
        Replica().start(calling.settings, serve=False) as peer_of,
        httpx2.AsyncClient(base_url=endpoint_of(context), trust_env=False) as http,
    ):
        await alpha_double.expect(identity, ref, Grant(granted=True))
        await alpha_double.until_current(identity, ref, Grant(granted=True))
        servers.jazz.kill()
        try:
            await eventually("the loss of the connection", lambda: not context.node.connected)
            assert (await http.get("/readyz")).json() == {"ready": True, "missing": []}
            assert await call(context, alice, "greet", {}) == "hello"
            with pytest.raises(NotAllowed):
                await call(context, bob, "greet", {})
            assert await (await peer_of.peer("greeting")).call("whoami", {}) == calling.credentials.account_id
        finally:
            servers.jazz.start()
        await eventually("the connection", lambda: context.node.connected)
        assert await call(context, alice, "greet", {}) == "hello"


async def test_a_start_waits_for_the_sync_server_and_reports_that(servers: Servers, identity: Identity) -> None:
    servers.jazz.kill()
    settings = identity.settings.model_copy(update={"listen_port": free_port()})
    starting = asyncio.create_task(_start_once(settings))
    try:
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{settings.listen_port}", trust_env=False) as http:

            async def live() -> httpx2.Response | None:
                try:
                    return await http.get("/healthz")
                except httpx2.ConnectError:
                    return None

            health = await eventually("an answer", live, lambda seen: seen is not None)
            assert health is not None
            assert health.status_code == 200
            assert (await http.get("/readyz")).json()["missing"] == ["starting"]
            refused = await http.post(f"/replicas/greeter/rpc/{GREETING}/whoami", content=b"{}")
            assert (refused.status_code, refused.json()["error"]["code"]) == (503, "not-serving")
            assert (await http.get("/replicas/greeter/account")).status_code == 503
    finally:
        servers.jazz.start()
    await starting


async def test_a_start_waits_for_etcd_in_the_same_process(
    servers: Servers, identity: Identity, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The data of a contract is created under a lock; etcd may be unreachable for longer than a lock is waited for."""
    monkeypatch.setitem(LockService.lock.__wrapped__.__kwdefaults__, "wait", 0.3)
    replica, attempts = Replica(greeting_contract()), 0

    @replica.data(GREETING)
    async def create(context: Context) -> CoMap:
        nonlocal attempts
        attempts += 1
        if attempts == 3:
            servers.etcd.start()
        async with context.transaction(context.node.unique_map_id(context.public.id, "greetings")):
            return await context.node.unique_map(context.public, "greetings", {"schema": 1})

    servers.etcd.kill()
    async with replica.start(identity.settings) as context:
        assert context.data[GREETING]["schema"] == 1
    assert attempts >= 3


async def test_a_secret_of_another_account_is_refused_without_showing_it(
    alpha_double: AlphaDouble, identity: Identity
) -> None:
    other = await alpha_double.account("other")
    settings = identity.settings.model_copy(update={"account_id": other.account_id})
    with pytest.raises(InvalidCredentials, match="RESIDE_AGENT_SECRET belongs to") as caught:
        await _start_once(settings)
    assert identity.credentials.agent_secret not in str(caught.value)
    assert identity.credentials.agent_secret not in repr(settings)


async def test_a_port_in_use_is_named(identity: Identity) -> None:
    async with build_greeter().start(identity.settings) as context:
        port = int(endpoint_of(context).rpartition(":")[2])
        with pytest.raises(InvalidInput, match=f"can't listen on 127.0.0.1:{port}: Address already in use"):
            await _start_once(identity.settings.model_copy(update={"listen_port": port}))


async def test_an_error_in_the_block_is_raised_as_it_is(identity: Identity) -> None:
    with pytest.raises(KeyError, match="mine"):
        await _start_and_fail(identity.settings)


async def test_it_runs_in_a_thread_with_its_own_loop_without_signal_handlers(identity: Identity) -> None:
    """As in the seed, whose process belongs to Pulumi."""
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    failures: list[BaseException] = []

    def run() -> None:
        try:
            asyncio.run(_start_once(identity.settings))
        except BaseException as error:  # noqa: BLE001 - carried to the test's thread
            failures.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    await asyncio.to_thread(thread.join, 60)
    assert not thread.is_alive()
    assert failures == []
    async with build_greeter().start(identity.settings):
        assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before


async def test_as_a_process_it_logs_json_serves_and_exits_with_0_on_sigterm(identity: Identity) -> None:
    process = await _launch("examples/replicas/greeter/main.py", identity)
    started = await _log_line(process, "started")
    assert started["replica"] == "greeter"
    process.send_signal(signal.SIGTERM)
    rest = await _end(process)
    assert process.returncode == 0, rest
    assert any(line["event"] == "stopping" for line in rest)
    assert identity.credentials.agent_secret not in json.dumps([started, *rest])


async def test_a_oneshot_process_ends_with_0_when_its_code_returns_and_its_writes_are_stored(
    alpha_double: AlphaDouble, identity: Identity
) -> None:
    process = await _launch("examples/replicas/report/main.py", identity)
    log = await _end(process)
    assert process.returncode == 0, log
    async with Node(alpha_double.servers.jazz.url, await alpha_double.account("reader")) as reader:
        await reader.login()
        profile = await load_profile(reader, identity.credentials.account_id)
        written = await reader.find_unique_map(profile.group.id, "report")
        assert written is not None
        assert written["peers"] == {}


async def test_a_process_without_its_settings_ends_with_2_and_names_them() -> None:
    environment = {"PATH": os.environ["PATH"], "RESIDE_AGENT_SECRET": "sealerSecret_zNever/signerSecret_zShown"}
    process = await subprocess.create_subprocess_exec(
        sys.executable, "examples/replicas/report/main.py", cwd=ROOT, env=environment, stderr=subprocess.PIPE
    )
    _, complaint = await process.communicate()
    assert process.returncode == 2
    text = complaint.decode()
    assert "RESIDE_CONTROL_BLOCK_ID" in text
    assert "Shown" not in text


async def _start_once(settings: ReplicaSettings) -> None:
    async with build_greeter().start(settings):
        pass


async def _start_and_fail(settings: ReplicaSettings) -> None:
    async with build_greeter().start(settings):
        raise KeyError("mine")


async def _launch(program: str, identity: Identity) -> subprocess.Process:
    return await subprocess.create_subprocess_exec(
        sys.executable, program, cwd=ROOT, env=environment(identity, 0), stdout=subprocess.PIPE
    )


async def _log_line(process: subprocess.Process, event: str) -> dict[str, object]:
    assert process.stdout is not None
    async with asyncio.timeout(60):
        async for raw in process.stdout:
            line: dict[str, object] = json.loads(raw)
            if line["event"] == event:
                return line
    raise AssertionError(f"the process ended without saying {event}")


async def _end(process: subprocess.Process) -> list[dict[str, object]]:
    async with asyncio.timeout(60):
        out, _ = await process.communicate()
    return [json.loads(line) for line in out.splitlines()]
