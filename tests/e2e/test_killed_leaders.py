"""Alpha or the Sentinel is killed with SIGKILL during a load: the load is completed, without duplicates or locks."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from typing import TYPE_CHECKING

import anyio
import pytest
from e2e.administrator import address
from e2e.calls import steady_calls
from e2e.images import touched
from e2e.load_requests import approve, number_in
from e2e.pod_processes import kill, main_pid
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


def test_a_load_survives_a_kill_of_both_leaders(platform: Platform) -> None:
    """Alpha and the Sentinel die when the request exists; each dies alone in the next test."""
    name, leaders = "crash", ("alpha", "kubernetes-sentinel")
    image = platform.build("examples/replicas/report", "v1")
    assert [n for n in platform.replicas() if n.startswith(name)] == []
    rest = platform.load_and_disturb(image, name, lambda: kill(platform, *leaders))
    assert "version 1 is completed" in rest, rest
    assert platform.replicas()[name]["status"] == "completed"
    assert len([n for n in platform.replicas() if n.startswith(name)]) == 1
    assert len(platform.objects_of(name, "Job")) == 1
    eventually_sync("no lock", lambda: not _transactions(platform), within=180)
    eventually_sync("their return", lambda: all(platform.ready_pods(leader) for leader in leaders), within=180)


def test_a_rollout_survives_kills_after_its_approval_and_while_it_runs(platform: Platform) -> None:
    """Alpha dies when it has responded to the approval, the Sentinel when the new version starts. No call fails."""
    if "caller" not in platform.replicas():
        platform.load(platform.build("examples/replicas/caller", "v1"))
    before = platform.replicas()["greeter"]
    version = before["version"] + 1
    image = touched(platform, before["image"])
    number = number_in(platform.reside("request", "create", image, "--replica-id", str(before["id"])).stdout)

    def roll_out() -> None:
        approve(platform, number)
        kill(platform, "alpha")
        eventually_sync("the new version's start", lambda: platform.get("Deployment", f"greeter-{version}"), within=240)
        kill(platform, "kubernetes-sentinel")
        eventually_sync("its end", lambda: _running(platform, "greeter") == [version], within=180)

    async def scenario() -> list[str]:
        async with steady_calls(platform, a_second=5) as outcome:
            await anyio.to_thread.run_sync(roll_out)
        return outcome.failures

    assert anyio.run(scenario) == []
    row = platform.replicas()["greeter"]
    assert (row["version"], row["status"]) == (version, "running")
    eventually_sync("the Deployment alone", lambda: len(platform.objects_of("greeter", "Deployment")) == 1, within=180)
    eventually_sync("no lock", lambda: not _transactions(platform), within=180)


def _running(platform: Platform, name: str) -> list[int]:
    """Return the versions of a replica that have pods."""
    pods = platform.objects_of(name, "Pod")
    return sorted({int(pod["metadata"]["labels"]["reside.io/version"]) for pod in pods})


def test_a_load_and_a_rollback_show_and_wait_out_a_restart_of_the_sentinel(platform: Platform) -> None:
    """Its process stops when the command begins, and is killed when the command has said that it waits."""
    image = platform.build("examples/replicas/report", "v1")
    said = _over_a_restart(platform, "replica", "load", image, "--name", "patient", "--auto-approve")
    assert "version 1 is completed" in said, said
    first = platform.replicas()["patient"]
    platform.load(touched(platform, first["image"]), "--replica-id", str(first["id"]))
    said = _over_a_restart(platform, "replica", "rollback", "patient", "--auto-approve")
    assert "version 3 is completed" in said, said
    assert platform.replicas()["patient"]["image"] == first["image"]
    assert len(platform.objects_of("patient", "Job")) == 1
    eventually_sync("its return", lambda: platform.ready_pods("kubernetes-sentinel"), within=180)


def _over_a_restart(platform: Platform, *arguments: str) -> str:
    """Run a command over a restart of the Sentinel, and return what it has printed."""
    pods = eventually_sync("the Sentinel", lambda: platform.ready_pods("kubernetes-sentinel"), within=180)
    pids = [main_pid(pod["metadata"]["uid"]) for pod in pods]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    command = subprocess.Popen(
        [*platform.command, *arguments],
        env=platform.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    with command:
        try:
            said = ""
            for line in command.stdout or ():
                said += line
                if "waiting: the Sentinel has not previewed the change" in line:
                    break
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
        rest, _ = command.communicate(timeout=300)
    said += rest
    assert command.returncode == 0, said
    assert "it goes on after" in rest, said
    return said
