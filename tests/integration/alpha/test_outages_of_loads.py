"""A part of the platform restarts while a load waits: the load waits, too, shows that, and ends well.

Ctrl-C at any step leaves nothing that nobody knows of: the command says what remains and how to go on. What happens
while Jazz is away, and while the Sentinel makes no previews, is shown in test_reasons.
"""

from __future__ import annotations

import asyncio
import re
import signal
from typing import TYPE_CHECKING, Any

import pytest
from integration.alpha.processes import alpha_process
from support.alpha_cluster import HOST, AlphaCluster, Client, Servers, alpha_cluster
from support.eventually import eventually
from support.ports import free_port
from support.reside_command import Operator, operator_of

from reside.alpha import records

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from support.reside_command import Command

    from reside.model.entities import LoadRequest

pytestmark = pytest.mark.anyio
INFO: dict[str, Any] = {"name": "worker", "class": "long-running", "exclusive": False, "scalable": True}
IMAGE = f"{HOST}/examples/worker:v1"


@pytest.fixture(scope="module")
async def cluster(servers: Servers) -> AsyncIterator[AlphaCluster]:
    await servers.push("examples/worker:v1", type="replica", info=INFO)
    async with alpha_cluster(servers) as made:
        yield made


@pytest.fixture(scope="module")
async def admin(cluster: AlphaCluster) -> Client:
    return await cluster.admin()


@pytest.fixture(scope="module")
def operator(cluster: AlphaCluster, admin: Client, tmp_path_factory: pytest.TempPathFactory) -> Operator:
    return operator_of(cluster, admin, tmp_path_factory.mktemp("operator"))


def number_in(said: str) -> int:
    found = re.search(r"request (\d+)", said)
    assert found, said
    return int(found[1])


async def request(cluster: AlphaCluster, number: int) -> LoadRequest:
    return (await records.find_request(cluster.alpha.data, number)).value


async def asked(command: Command) -> int:
    """Wait for the prompt of a load, and return the id of its request."""
    return number_in(await command.until("Approve?"))


async def test_an_approval_during_a_restart_of_alpha_is_carried_out(
    cluster: AlphaCluster, operator: Operator, tmp_path: Path
) -> None:
    port = free_port()
    log, alpha = tmp_path / "alpha.log", f"http://127.0.0.1:{port}"
    await cluster.stop_leading()
    try:
        async with (
            alpha_process(cluster, log, port) as first,
            operator.running("replica", "load", IMAGE, "--name", "restarted", alpha=alpha) as load,
        ):
            await asked(load)
            first.send_signal(signal.SIGTERM)
            await first.wait()
            await load.answer("y")
            await load.until("waiting: ")
            async with alpha_process(cluster, log, port):
                said = await load.end()
    finally:
        cluster.lead()
    assert "can't be reached" in said, said
    assert said.endswith("version 1 is running"), said


async def test_a_load_waits_for_etcd(cluster: AlphaCluster, operator: Operator) -> None:
    async with operator.running("replica", "load", IMAGE, "--name", "unlocked") as load:
        await asked(load)
        cluster.servers.etcd.kill()
        try:
            await load.answer("y")
            await load.until("waiting: Alpha has not answered approve-load-request for 5 s")
        finally:
            await asyncio.to_thread(cluster.servers.etcd.start)
        said = await load.end()
    assert "it goes on after" in said, said
    assert said.endswith("version 1 is running"), said


async def test_a_load_says_that_the_sentinel_makes_no_preview(cluster: AlphaCluster, operator: Operator) -> None:
    cluster.orders.previewing = False
    async with operator.running("replica", "load", IMAGE, "--name", "unseen", "--auto-approve") as load:
        await load.until("waiting: the Sentinel has not previewed the change for 10 s")
        cluster.orders.previewing = True
        cluster.sentinel.process_again()
        said = await load.end()
    assert "it goes on after" in said, said
    assert said.endswith("version 1 is running"), said


async def test_ctrl_c_at_the_prompt_rejects_the_request(cluster: AlphaCluster, operator: Operator) -> None:
    async with operator.running("replica", "load", IMAGE, "--name", "regretted") as load:
        number = await asked(load)
        load.interrupt()
        said = await load.end(130)
    assert f"load request {number} was rejected: nothing was changed" in said, said
    assert (await request(cluster, number)).status == "rejected"


async def test_ctrl_c_during_validation_or_approval_names_the_open_request(
    cluster: AlphaCluster, operator: Operator
) -> None:
    cluster.orders.previewing = False
    async with operator.running("replica", "load", IMAGE, "--name", "left") as load:
        number = number_in(await load.until("validating, the Sentinel previews the change"))
        load.interrupt()
        said = await load.end(130)
    assert f"load request {number} stays open: `reside request approve {number}`" in said, said
    cluster.orders.previewing = True
    cluster.sentinel.process_again()
    await eventually("its preview", lambda: request(cluster, number), lambda found: found.status == "requires-approval")
    async with operator.running("request", "approve", str(number)) as approve:
        await approve.until("Approve?")
        approve.interrupt()
        said = await approve.end(130)
    assert f"load request {number} stays open: `reside request approve {number}`" in said, said
    assert (await request(cluster, number)).status == "requires-approval"


async def test_ctrl_c_during_the_rollout_says_that_it_goes_on(cluster: AlphaCluster, operator: Operator) -> None:
    cluster.orders.hold.add("Deployment/slow-1")
    async with operator.running("replica", "load", IMAGE, "--name", "slow", "--auto-approve") as load:
        await load.until("slow: version 1 starting")
        load.interrupt()
        said = await load.end(130)
    assert "version 1 of slow is rolled out without this command: see `reside replica describe slow`" in said, said
    cluster.orders.hold.clear()
    cluster.sentinel.process_again()
    await cluster.has_status("slow", "running")


async def test_ctrl_c_before_the_request_exists_says_where_to_look(operator: Operator) -> None:
    nobody = f"http://127.0.0.1:{free_port()}"
    async with operator.running("replica", "load", IMAGE, "--name", "early", alpha=nobody) as load:
        await load.until("waiting: ")
        load.interrupt()
        said = await load.end(130)
    assert "the load request may exist: see `reside request list`" in said, said


async def test_an_account_that_may_not_approve_leaves_the_request_to_others(
    cluster: AlphaCluster, admin: Client, operator: Operator, tmp_path: Path
) -> None:
    requester = await cluster.client("requester")
    order = {"replica": 1, "contract": "registry.reside.internal/reside/contracts/alpha.v1"}
    order |= {"account": requester.credentials.account_id, "permission": "load-request:create"}
    await admin.call("grant-permission", order)
    await eventually("the permission", lambda: requester.has("load-request:create"))
    other = Operator(tmp_path, requester.credentials, operator.jazz, operator.alpha, operator.alpha_account)
    other.configure()
    said = await other.reside("replica", "load", IMAGE, "--name", "asked", "--auto-approve", code=1)
    number = number_in(said)
    assert "load-request:approve" in said, said
    assert f"load request {number} stays open: `reside request approve {number}`" in said, said


async def test_ctrl_c_during_a_deletion_says_that_it_goes_on(
    cluster: AlphaCluster, admin: Client, operator: Operator
) -> None:
    await admin.load("examples/worker:v1", name="doomed")
    await cluster.has_status("doomed", "running")
    cluster.orders.reporting = False
    async with operator.running("replica", "delete", "doomed", "--auto-approve") as delete:
        await delete.until("objects are deleted")
        await eventually("the order", lambda: _is_ordered(cluster, "doomed"))
        delete.interrupt()
        said = await delete.end(130)
    assert "doomed may be deleted without this command: see `reside replica describe doomed`" in said, said
    cluster.orders.reporting = True
    cluster.sentinel.process_again()
    await eventually("its end", cluster.names, lambda names: "doomed" not in names.values())


async def _is_ordered(cluster: AlphaCluster, name: str) -> bool:
    return (await cluster.replica(name)).deletion is not None
