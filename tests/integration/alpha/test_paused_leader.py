"""A leader that is stopped (SIGSTOP) for a minute in the middle of a load, while another one completes it."""

from __future__ import annotations

import asyncio
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from integration.alpha.processes import alpha_process
from support.alpha_cluster import AlphaCluster, Client, Servers, alpha_cluster
from support.cluster_invariants import faults, unfinished
from support.cluster_picture import History, take_picture
from support.eventually import eventually

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import AsyncIterator

pytestmark = pytest.mark.anyio

STOPPED_S = 60.0
"""Twice the time to live of the leader's lease."""


@pytest.fixture
async def cluster(servers: Servers) -> AsyncIterator[AlphaCluster]:
    async with alpha_cluster(servers, leading=False) as made:
        yield made


def written_since(cluster: AlphaCluster, began: float) -> list[tuple[str, str]]:
    """Return value and session of the transactions of Alpha's account that other processes have made since a time.

    A transaction that the old leader had made before it was stopped may leave the process when it continues. Whether
    such a transaction harms is shown by the invariants that the test checks last.
    """
    node = cluster.alpha.node
    mine = node._host.writer.session, node._host.writer.agent_session
    return [
        (str(core.co_id), session)
        for core in node._host.store.cores.values()
        for session, log in core.sessions.items()
        if session.startswith(node.account_id) and session not in mine
        for transaction in log.transactions
        if transaction.made_at > began * 1000
    ]


def state_of(pid: int) -> str:
    """Return the state of a process: `R` running, `S` sleeping, `T` stopped."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


async def stop_in_a_load(cluster: AlphaCluster, admin: Client, process: Process) -> int:
    """Approve a load, and stop the leader when it has begun to create the version; return the request."""
    number = await admin.create("examples/plain:v1")
    request = await admin.settled(number)
    assert request.preview is not None, request.error_message
    await admin.call("approve-load-request", {"id": number, "revision": request.revision})
    await admin.cluster_request(number, lambda r: r.target_replica is not None)
    process.send_signal(signal.SIGSTOP)
    await eventually("that it is stopped", lambda: state_of(process.pid), lambda state: state == "T")
    return number


@pytest.mark.timeout(400)
async def test_a_leader_that_was_stopped_for_a_minute_changes_nothing_when_it_continues(
    cluster: AlphaCluster, servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "alpha.log"
    info: dict[str, Any] = {"name": "plain", "class": "long-running", "exclusive": True, "scalable": True}
    for version in (1, 2):
        await servers.push(f"examples/plain:v{version}", type="replica", info=info)
    admin = await cluster.admin()
    monkeypatch.setattr("support.alpha_cluster._WITHIN_S", 120.0)
    async with alpha_process(cluster, log) as old:
        number = await stop_in_a_load(cluster, admin, old)
        minute = asyncio.create_task(asyncio.sleep(STOPPED_S))
        cluster.lead()
        await admin.cluster_request(number, lambda r: r.version is not None)
        await admin.load("examples/plain:v2")
        await cluster.has_status("plain", "stopped", "running")
        await minute
        continued_at = time.time()
        old.send_signal(signal.SIGCONT)
        await eventually("its loss of the lease", lambda: "lock lost" in log.read_text() or old.returncode is not None)
        await cluster.alpha.node.catch_up()
        assert written_since(cluster, continued_at) == []
    history = History()

    async def wrong() -> list[str]:
        picture = await take_picture(cluster.alpha, history)
        return [*faults(picture, history), *unfinished(picture)]

    await eventually("a state that is possible, and finished", wrong, lambda found: not found)
