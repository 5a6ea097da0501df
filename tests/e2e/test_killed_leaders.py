"""Alpha or the Sentinel is killed with SIGKILL during a load: the load is completed, without duplicates or locks."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING

import pytest
from e2e.administrator import address
from e2e.pod_processes import main_pid
from support.eventually import eventually_sync

from reside.alpha.lock_access import root_user
from reside.jazz import Credentials
from reside.locks import EtcdUnavailable
from reside.locks.etcd import Etcd, decode, encode

if TYPE_CHECKING:
    from support.platform import Platform

    from reside.locks import EtcdUser

pytestmark = pytest.mark.timeout(1200)


async def _keys(platform: Platform) -> list[str]:
    """Return the keys in etcd, which shows them to Alpha only."""
    alpha = Credentials.from_secret(platform.secret("alpha")["agentSecret"])

    async def root() -> EtcdUser:
        return root_user(alpha)

    hosts = [f"http://{address(platform, 'etcd', 2379)}"]
    everything = {"key": encode("reside/"), "range_end": encode("reside0"), "keys_only": True}
    stranger, client = Etcd(hosts), Etcd(hosts, root)
    try:
        with pytest.raises(EtcdUnavailable, match="etcd asks for a user"):
            await stranger.gateway.post("/v3/kv/range", everything)
        found = (await client.gateway.post("/v3/kv/range", everything)).get("kvs", [])
    finally:
        await stranger.aclose()
        await client.aclose()
    return [decode(entry["key"]) for entry in found]


def _transactions(platform: Platform) -> list[str]:
    """Return the locks of transactions that are held."""
    keys = asyncio.run(_keys(platform))
    assert any("/leader/" in key for key in keys), f"no leader's lease among {keys}: was the right place looked at?"
    return [key for key in keys if "/transaction/" in key]


@pytest.mark.parametrize("victim", ["alpha", "kubernetes-sentinel"])
def test_a_load_survives_a_kill(platform: Platform, victim: str) -> None:
    name = f"crash-{victim.rsplit('-', maxsplit=1)[-1]}"
    image = platform.build("examples/replicas/report", "v1")
    pods = platform.ready_pods(victim)
    requests = len([n for n in platform.replicas() if n.startswith(name)])

    def kill() -> None:
        for pod in pods:
            os.kill(main_pid(pod["metadata"]["uid"]), signal.SIGKILL)

    rest = platform.load_and_disturb(image, name, kill)
    assert "version 1 is completed" in rest, rest
    assert platform.replicas()[name]["status"] == "completed"
    assert requests == 0
    assert len([n for n in platform.replicas() if n.startswith(name)]) == 1
    assert len(platform.objects_of(name, "Job")) == 1
    eventually_sync("no lock", lambda: not _transactions(platform), within=60)
    eventually_sync(f"{victim}'s return", lambda: platform.ready_pods(victim), within=90)
