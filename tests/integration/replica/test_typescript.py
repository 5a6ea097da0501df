"""The package for TypeScript: its own checks, and what its replicas do with Alpha, etcd and the sync server."""

from __future__ import annotations

import asyncio
from datetime import datetime  # noqa: TC003 - the model reads the annotation
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from support.eventually import eventually
from support.languages import running
from support.ports import free_port
from support.replicas import GREETING, AlphaDouble

from reside.jazz import Node
from reside.jazz.typed import CoMapModel, ListOf
from reside.locks import LockService
from reside.model.endpoints import rpc_path
from reside.model.permissions import Grant, PermissionRef
from reside.replica.client import call_method
from reside.replica.profile import load_profile

if TYPE_CHECKING:
    from support.replicas import Identity
    from support.typescript import TypeScript

pytestmark = pytest.mark.anyio

COUNTING = "registry.example/contracts/counting.v1"


class Counter(CoMapModel):
    """The data of `typescript/counter`."""

    count: int
    by: ListOf[str]
    last: datetime | None = None


def test_the_package_has_no_errors_of_types_and_style_and_reads_the_vectors(typescript: TypeScript) -> None:
    typescript.check()


async def test_the_example_of_a_caller_reports_refusals_and_greetings(
    alpha_double: AlphaDouble, typescript: TypeScript
) -> None:
    """Here it calls the greeter in Python; test_languages.py has the other pairs."""
    greeter, calling = await alpha_double.identity("greeter"), await alpha_double.identity("caller")
    calling.rcb.set_requirements({"greeting": [greeter.credentials.account_id]})
    await alpha_double.node.flush()
    ref = PermissionRef(calling.credentials.account_id, GREETING, "greet")
    reader = Node(alpha_double.servers.jazz.url, await alpha_double.account("reader"))
    async with (
        reader,
        running(typescript, "typescript", "caller", calling, free_port()) as program,
        running(typescript, "python", "greeter", greeter, free_port()),
    ):
        await reader.login()
        refused = await last_result(reader, calling, "refused")
        assert "needs the permission greet" in refused["message"]
        await alpha_double.expect(greeter, ref, Grant(granted=True, params={"loud": True}))
        assert (await last_result(reader, calling, "ok"))["message"] == "Hello, caller"
        assert 'caller_calls_total{outcome="ok"}' in (await program.http.get("/metrics")).text


async def test_a_grant_waits_for_the_lock_that_another_language_holds_and_is_carried_out_once(
    alpha_double: AlphaDouble, typescript: TypeScript
) -> None:
    greeter = await alpha_double.identity("greeter")
    granted = Grant(granted=True)
    account, block = greeter.credentials.account_id, greeter.rcb.id
    ref = PermissionRef((await alpha_double.account("grantee")).account_id, GREETING, "greet")
    etcd = alpha_double.servers.etcd.url
    async with (
        running(typescript, "typescript", "greeter", greeter, free_port()),
        running(typescript, "typescript", "greeter", greeter, free_port()),
        LockService([etcd], space=account) as locks,
    ):
        async with locks.lock(f"transaction/grant/{block}/{ref.account}"):
            await alpha_double.expect(greeter, ref, granted)
            await eventually("both pods to wait", lambda: watchers(etcd), lambda count: count >= 2, within=90)
            entry = greeter.rcb.find(ref)
            assert entry is not None
            assert entry.current is None
        await alpha_double.until_current(greeter, ref, granted)
    permissions = await alpha_double.node.load_map(str(greeter.rcb.root["permissions"]))
    assert [
        edit.value for edit in (await alpha_double.node.load_map(str(permissions[ref.key]))).history("current")
    ] == [granted.document()]


async def test_transactions_of_two_pods_on_the_data_of_a_contract_lose_no_write(
    alpha_double: AlphaDouble, typescript: TypeScript
) -> None:
    counter, client = await alpha_double.identity("counter"), await alpha_double.account("client")
    ports = (free_port(), free_port())
    async with (
        running(typescript, "typescript", "counter", counter, ports[0]),
        running(typescript, "typescript", "counter", counter, ports[1]),
        httpx2.AsyncClient(trust_env=False) as http,
    ):

        async def count(number: int) -> Any:
            return await call_method(
                http,
                client,
                endpoint=f"http://127.0.0.1:{ports[number % 2]}",
                receiver=counter.credentials.account_id,
                path=rpc_path("counter", COUNTING, "count"),
                body={"by": str(number)},
            )

        counted = await asyncio.gather(*(count(number) for number in range(8)))
        assert sorted(answer["count"] for answer in counted) == list(range(1, 9))
        async with Node(alpha_double.servers.jazz.url, client) as reader:
            await reader.login()
            profile = await load_profile(reader, counter.credentials.account_id)
            shown = await Counter.load(reader, str(profile.contracts[COUNTING]), resolve=lambda counter: counter.by)
            assert (shown.count, sorted(shown.by)) == (8, [str(number) for number in range(8)])
            assert shown.last is not None


async def test_a_replica_waits_for_the_sync_server_at_its_start_and_returns_to_it_later(
    alpha_double: AlphaDouble, typescript: TypeScript
) -> None:
    greeter, jazz = await alpha_double.identity("greeter"), alpha_double.servers.jazz
    ref = PermissionRef((await alpha_double.account("grantee")).account_id, GREETING, "greet")
    jazz.stop()
    try:
        async with running(typescript, "typescript", "greeter", greeter, free_port(), status=503) as program:
            assert (await program.http.get("/healthz")).status_code == 200
            assert (await program.http.get("/readyz")).json() == {"ready": False, "missing": ["starting"]}
            for grant in (Grant(granted=True), Grant(granted=False)):
                jazz.kill()
                jazz.start()
                await alpha_double.expect(greeter, ref, grant)
                await alpha_double.until_current(greeter, ref, grant)
                assert (await program.http.get("/readyz")).status_code == 200
    finally:
        jazz.kill()
        jazz.start()


async def watchers(etcd: str) -> int:
    """Return how many watches etcd serves."""
    async with httpx2.AsyncClient(trust_env=False) as http:
        lines = (await http.get(f"{etcd}/metrics")).text.splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("etcd_debugging_mvcc_watcher_total "))


async def last_result(reader: Node, caller: Identity, outcome: str) -> dict[str, Any]:
    """Return what the caller reports, once it reports this outcome."""

    async def look() -> dict[str, Any] | None:
        profile = await load_profile(reader, caller.credentials.account_id)
        shown = await reader.find_unique_map(profile.group.id, "last-call")
        result = shown.get("result") if shown is not None else None
        return result if isinstance(result, dict) and result.get("outcome") == outcome else None

    found = await eventually(f"the outcome {outcome}", look, within=90)
    assert found is not None
    return found
