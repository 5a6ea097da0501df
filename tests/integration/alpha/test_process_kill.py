"""Alpha as a separate process, killed with SIGKILL in the middle of a load: the next Alpha completes the load."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

import pytest
from integration.alpha.processes import alpha_process
from support.alpha_cluster import CODE, AlphaCluster, Servers, alpha_cluster

from reside.alpha.finished_requests import all_requests

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.anyio


@pytest.fixture
async def cluster(servers: Servers) -> AsyncIterator[AlphaCluster]:
    async with alpha_cluster(servers, leading=False) as made:
        yield made


async def test_a_load_is_completed_after_alpha_is_killed(
    cluster: AlphaCluster, servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lease and lock of the killed leader expire, then the load continues where it stopped."""
    log = tmp_path / "alpha.log"
    info: dict[str, Any] = {"name": "plain", "class": "long-running", "exclusive": True, "scalable": True}
    await servers.push("examples/plain:v1", type="replica", info=info)
    admin = await cluster.admin()
    async with alpha_process(cluster, log) as first:
        number = await admin.create("examples/plain:v1")
        request = await admin.settled(number)
        assert request.preview is not None, log.read_text()
        body = {"id": number, "revision": request.revision}
        await admin.call("approve-load-request", body)
        await admin.cluster_request(number, lambda r: r.target_replica is not None)
        first.send_signal(signal.SIGKILL)
        await first.wait()
    monkeypatch.setattr("support.alpha_cluster._WITHIN_S", 90.0)
    async with alpha_process(cluster, log):
        done = await admin.cluster_request(number, lambda r: r.version is not None)
        await cluster.has_status("plain", "running")
    assert done.version == 1
    assert await cluster.names() == {3: "plain"}
    assert len(await all_requests(cluster.alpha.data)) == 1
    text = log.read_text()
    assert cluster.settings().agent_secret.get_secret_value() not in text
    assert CODE not in text
