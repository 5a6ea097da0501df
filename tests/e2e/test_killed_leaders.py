"""Alpha or the Sentinel is killed with SIGKILL during a load: the load is completed, without duplicates or locks."""

from __future__ import annotations

import json
import os
import signal
from base64 import b64decode
from typing import TYPE_CHECKING

import pytest
from e2e.administrator import address
from e2e.pod_processes import main_pid
from support.eventually import eventually_sync

if TYPE_CHECKING:
    from support.platform import Platform

pytestmark = pytest.mark.timeout(1200)


def _locks(platform: Platform) -> list[str]:
    """Return the keys of held locks in etcd, except for leader leases."""
    body = {"key": "cmVzaWRlLw==", "range_end": "cmVzaWRlMA==", "keys_only": True}  # reside/ … reside0
    url = f"http://{address(platform, 'etcd', 2379)}/v3/kv/range"
    answer = json.loads(platform.run("curl", "--silent", "--fail", "--data", json.dumps(body), url).stdout)
    keys = [b64decode(kv["key"]).decode() for kv in answer.get("kvs", [])]
    assert any("/leader/" in key for key in keys), f"no leader's lease among {keys}: was the right place looked at?"
    return [key for key in keys if "/leader/" not in key]


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
    eventually_sync("no lock", lambda: not _locks(platform), within=60)
    eventually_sync(f"{victim}'s return", lambda: platform.ready_pods(victim), within=90)
