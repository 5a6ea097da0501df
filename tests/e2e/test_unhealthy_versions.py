"""Versions that never become healthy: the old one serves on, and they are rolled back or replaced, with the reason."""

from __future__ import annotations

import os
import signal
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from e2e.calls import steady_calls
from e2e.images import running
from e2e.pod_processes import main_pid
from support.eventually import eventually_sync

if TYPE_CHECKING:
    import subprocess

    from support.platform import Platform

pytestmark = pytest.mark.timeout(1200)

CRASHES = ("python", "-c", "import sys; print('password=hunter2'); sys.exit(3)")
NEVER_READY = ("python", "-c", "import time; time.sleep(3600)")


def greeter(platform: Platform) -> dict[str, Any]:
    """Return the row of the greeter."""
    found: dict[str, Any] = platform.replicas()["greeter"]
    return found


def load_broken(platform: Platform, command: tuple[str, ...], *options: str) -> subprocess.CompletedProcess[str]:
    """Load a version of the greeter that runs another command, while it is called; no call may fail."""
    if "caller" not in platform.replicas():
        platform.load(platform.build("examples/replicas/caller", "v1"))
    row = greeter(platform)
    options = ("--replica-id", str(row["id"]), "--health-deadline", "15", *options)
    load = partial(platform.load, running(platform, row["image"], command), *options, check=False)

    async def scenario() -> tuple[subprocess.CompletedProcess[str], list[str]]:
        async with steady_calls(platform, a_second=20) as outcome:
            done = await anyio.to_thread.run_sync(load)
        return done, outcome.failures

    done, failures = anyio.run(scenario)
    assert failures == []
    return done


def test_a_crash_looping_version_is_rolled_back_and_says_why(platform: Platform) -> None:
    before = greeter(platform)
    done = load_broken(platform, CRASHES, "--on-failure", "roll-back")
    assert done.returncode == 1
    said = " ".join(done.stderr.split())
    failed = before["version"] + 1
    why = "it was not healthy within 15 s: CrashLoopBackOff: exit code 3"
    assert f"version {failed} of greeter was rolled back to version {before['version']}: {why}" in said
    assert "hunter2" not in done.stdout + done.stderr
    eventually_sync(
        "the old version alone", lambda: greeter(platform)["versions"][-1]["status"] == "stopped", within=180
    )
    row = greeter(platform)
    assert (row["version"], row["status"]) == (before["version"], "running")
    assert row["note"] == f"version {failed} was rolled back: {why}"


def test_a_version_that_never_gets_ready_stays_until_it_is_replaced(platform: Platform) -> None:
    before = greeter(platform)
    done = load_broken(platform, NEVER_READY)
    assert done.returncode == 1
    why = "it was not healthy within 15 s: Unhealthy: Startup probe failed: connection refused"
    assert why in " ".join(done.stderr.split())
    row = greeter(platform)
    assert (row["status"], row["version"]) == ("error", row["versions"][-1]["id"])
    statuses = {version["id"]: version["status"] for version in row["versions"]}
    assert statuses[before["version"]] == "running-outdated"
    described = platform.reside("replica", "describe", "greeter").stdout
    assert "what to do:\n  Unhealthy: read `reside replica logs NAME`" in described
    platform.reside("replica", "rollback", "greeter", "--auto-approve")
    row = greeter(platform)
    assert row["status"] == "running"
    assert row["image"] == before["image"], "it is rolled back to the last version that was healthy"


def test_a_replica_is_scaled_and_disabled_and_enabled(platform: Platform) -> None:
    for arguments, pods in ((("scale", "greeter", "2"), 2), (("disable", "greeter"), 0), (("enable", "greeter"), 2)):
        platform.reside("replica", *arguments)
        eventually_sync(
            f"{pods} pods",
            lambda: platform.objects_of("greeter", "Pod"),
            lambda found, n=pods: len(found) == n,
            within=180,
        )
    eventually_sync("readiness", lambda: len(platform.ready_pods("greeter")) == 2, within=180)
    platform.reside("replica", "scale", "greeter", "1")
    eventually_sync("one pod", lambda: len(platform.objects_of("greeter", "Pod")) == 1, within=180)


def test_a_version_with_one_of_two_pods_ready_is_degraded_and_says_which_probe_fails(platform: Platform) -> None:
    platform.reside("replica", "scale", "greeter", "2")
    first, _ = eventually_sync(
        "two ready pods", lambda: platform.ready_pods("greeter"), lambda pods: len(pods) == 2, within=180
    )
    pid = main_pid(first["metadata"]["uid"], b"python")
    os.kill(pid, signal.SIGSTOP)
    try:
        row = eventually_sync(
            "a reason", lambda: greeter(platform), lambda row: row["status"] == "degraded" and row["reason"], within=180
        )
    finally:
        os.kill(pid, signal.SIGCONT)
    assert row["reason"].endswith("probe failed: timeout"), row["reason"]
    row = eventually_sync("its end", lambda: greeter(platform), lambda row: row["status"] == "running", within=180)
    assert row["reason"] is None
