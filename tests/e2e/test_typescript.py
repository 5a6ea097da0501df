"""The greeter in TypeScript takes the place of the one in Python on a whole cluster, and gives it back.

A replica in TypeScript that calls another one is in `test_tutorial.py`.
"""

from __future__ import annotations

import os
import re
import signal
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from e2e.administrator import registered
from e2e.calls import Refused, call_greeter, steady_calls
from e2e.images import touched
from e2e.pod_processes import main_pid
from e2e.test_rollout import in_thread, load_caller, pods
from support.eventually import eventually, eventually_sync
from support.reports import report

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.platform import Platform

pytestmark = pytest.mark.timeout(1200)

USER = "65532"
IN_TYPESCRIPT = 3
"""The version that the greeter in TypeScript answers."""


def test_no_call_fails_while_the_greeter_changes_its_language(platform: Platform) -> None:
    """The caller in Python calls both. Later tests find the one in Python again.

    In between, the greeter changes to another version in TypeScript while Jazz and etcd restart.
    """
    load_caller(platform)
    greeter = platform.replicas()["greeter"]
    image = platform.build("examples/typescript/greeter", "ts")
    assert anyio.run(replaced, platform, greeter, image, IN_TYPESCRIPT) == []
    describe(platform)
    before = successful_calls(platform)
    eventually_sync("a call of the caller", lambda: successful_calls(platform), lambda found: found > before)

    row, other = platform.replicas()["greeter"], touched(platform, image)
    assert anyio.run(partial(replaced, platform, row, other, IN_TYPESCRIPT, a_second=50, restarts=True)) == []

    stranger = anyio.run(registered, platform)
    call = partial(anyio.run, call_greeter, platform, stranger)
    with pytest.raises(Refused, match="needs the permission greet"):
        call()
    platform.reside("permission", "grant", stranger.account_id, "greeter", "greet")
    answer = eventually_sync("a call with the permission", partial(allowed, call), lambda found: found is not None)
    assert answer == {"message": "Hi, test", "version": IN_TYPESCRIPT}
    platform.reside("permission", "revoke", stranger.account_id, "greeter", "greet")
    assert allowed(call) is None

    assert anyio.run(replaced, platform, platform.replicas()["greeter"], greeter["image"], None) == []


def allowed(call: Callable[[], dict[str, Any]]) -> dict[str, Any] | None:
    """Return the answer to a call; None if it is refused."""
    try:
        return call()
    except Refused:
        return None


async def replaced(
    platform: Platform,
    row: dict[str, Any],
    image: str,
    answers: int | None,
    *,
    a_second: int = 20,
    restarts: bool = False,
) -> list[str]:
    """Load another version of the greeter during calls; return the calls that failed, or what was never answered.

    With `restarts`, the processes of Jazz and etcd are killed once meanwhile.
    """
    new = str(row["version"] + 1)
    async with steady_calls(platform, a_second) as outcome:
        async with anyio.create_task_group() as group:
            group.start_soon(in_thread, platform.load, image, "--replica-id", str(row["id"]))
            for pod, program in (("jazz-0", b"server.mjs"), ("etcd-0", b"etcd")) if restarts else ():
                await in_thread(restart, platform, pod, program)
        await eventually(
            "the end of the old version",
            lambda: in_thread(pods, platform),
            lambda found: set(found) == {new},
            within=180,
        )
    missing = answers is not None and answers not in outcome.versions
    return outcome.failures + ([f"answered: {outcome.versions}"] if missing else [])


def restart(platform: Platform, pod: str, program: bytes) -> None:
    """Kill the process of a pod, and wait until the pod is ready with another one."""

    def restarts() -> tuple[int, bool]:
        (status,) = platform.get("Pod", pod)["status"]["containerStatuses"]
        return status["restartCount"], status["ready"]

    (before, _), uid = restarts(), platform.get("Pod", pod)["metadata"]["uid"]
    os.kill(main_pid(uid, program), signal.SIGKILL)
    eventually_sync(f"the restart of {pod}", restarts, lambda found: found[0] > before and found[1], within=120)


def successful_calls(platform: Platform) -> float:
    """Return how many calls of the caller were answered."""
    (pod,) = platform.ready_pods("caller")
    text = platform.run("curl", "--silent", "--fail", f"http://{pod['status']['podIP']}:8080/metrics").stdout
    found = re.search(r'^caller_calls_total\{outcome="ok"\} (\S+)$', text, re.MULTILINE)
    return float(found[1]) if found else 0


def describe(platform: Platform) -> None:
    """Print how long the greeter's pod took until it was ready, and its memory; check that it is not root's."""
    (pod,) = platform.ready_pods("greeter")
    pid = main_pid(pod["metadata"]["uid"], b"main.mjs")
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    assert set(status["Uid"].split()) == {USER}
    container = pod["status"]["containerStatuses"][0]["state"]["running"]["startedAt"]
    (ready,) = [each for each in pod["status"]["conditions"] if each["type"] == "Ready"]
    seconds = (datetime.fromisoformat(ready["lastTransitionTime"]) - datetime.fromisoformat(container)).total_seconds()
    lines = (line.split() for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:])
    megabytes = {line[0].rstrip(":"): int(line[1]) // 1024 for line in lines}
    shown = ", ".join(f"{name} {megabytes[name]} MB" for name in ("Rss", "Pss", "Anonymous"))
    report(f"the greeter in TypeScript: ready {seconds:.0f} s after the start of its container; {shown}")
