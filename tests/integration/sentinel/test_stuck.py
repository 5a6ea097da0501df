"""What is stuck delays no fresh change: deletions that do not end, entries that can not be read, a silent webhook."""

import asyncio
import json
import time
from typing import Any

import pytest
from integration.sentinel.setup import Setup
from integration.sentinel.webhooks import silent_webhook
from support.declarer import Declarer
from support.eventually import eventually
from support.reports import report
from support.sentinel import config_map, get, kubectl

from reside.jazz import Credentials
from reside.local import ClusterInfo
from reside.sentinel.term.applier import SUPERSEDED

pytestmark = pytest.mark.anyio
_STUCK = 10
_UNREADABLE = 100
_FRESH_S = 30.0
"""It takes less than 2 s if the machine has nothing else to do; behind what is stuck, a minute at least."""


def held(name: str, stack: str) -> dict[str, Any]:
    found = config_map(name, stack, x="1")
    found["metadata"]["finalizers"] = ["example.com/never"]
    return found


async def test_a_fresh_change_does_not_wait_for_what_is_stuck(cluster: ClusterInfo, setup: Setup) -> None:
    """Ten stacks wait for the end of a deletion, and a hundred entries name maps that nobody has."""
    async with setup.running():
        alpha = await setup.alpha()
        for number in range(_STUCK):
            name = f"stuck-{number}"
            stack = await alpha.declare(name, held(name, name), config_map(f"kept-{number}", name, x="1"))
        await alpha.applied(stack)
        for number in range(_UNREADABLE):
            alpha.desired.set(f"unread-{number}", Credentials.generate().account_id)
        for number in range(_STUCK):
            await alpha.declare(f"stuck-{number}", config_map(f"kept-{number}", f"stuck-{number}", x="1"))
        await alpha.report("stuck-0", lambda now: "deletionTimestamp" in json.dumps(now.get("ConfigMap/stuck-0")))
        seconds = [await _until_live(cluster, setup, alpha, str(number)) for number in range(3)]
        report(f"fresh changes beside {_STUCK + _UNREADABLE} stuck ones are live after {seconds} s")
        waiting = await alpha.report("stuck-0", lambda now: now["ConfigMap/stuck-0"].get("problem"))
        assert waiting["revision"] is None
        assert "example.com/never" in waiting["ConfigMap/stuck-0"]["problem"]
        await alpha.report("unread-0", lambda now: "can't be read" in (now.get("error") or ""))

        free = json.dumps({"metadata": {"finalizers": None}})
        for number in range(_STUCK):
            name = f"stuck-{number}"
            await asyncio.to_thread(
                kubectl, cluster, "-n", setup.namespace, "patch", "configmap", name, "--type=merge", "--patch", free
            )
        for number in range(_STUCK):
            await alpha.report(
                f"stuck-{number}", lambda now: now.get("revision") and "ConfigMap/stuck" not in str(list(now))
            )


async def _until_live(cluster: ClusterInfo, setup: Setup, alpha: Declarer, value: str) -> float:
    """Declare a fresh change; return the seconds until it is live."""

    async def live() -> dict[str, Any]:
        return await asyncio.to_thread(get, cluster, setup.namespace, "ConfigMap/fresh") or {}

    began = time.monotonic()
    stack = await alpha.declare("fresh", config_map("fresh", "fresh", x=value))
    await eventually("the change", live, lambda now: now.get("data") == {"x": value}, within=_FRESH_S)
    seconds = time.monotonic() - began
    assert (await alpha.applied(stack))["error"] is None
    return round(seconds, 2)


async def test_a_fresh_change_does_not_wait_for_a_webhook_that_never_answers(
    cluster: ClusterInfo, setup: Setup
) -> None:
    """A newer revision of the stack that waits for it ends the operation."""
    async with setup.running(), silent_webhook(cluster, setup.namespace) as asked:
        alpha = await setup.alpha()
        before = SUPERSEDED._value.get()
        await alpha.declare("hooked", config_map("slow", "hooked", x="1"), config_map("quick", "hooked", x="1"))
        async with asyncio.timeout(60):
            await asked.wait()
        fresh = await alpha.applied(await alpha.declare("fresh", config_map("fresh", "fresh", x="1")))
        assert fresh["error"] is None
        waiting = await alpha.report("hooked", lambda now: now)
        assert (waiting["revision"], waiting["ConfigMap/slow"]["status"]) == (None, "requested")

        without = await alpha.applied(await alpha.declare("hooked", config_map("quick", "hooked", x="2")))
        assert without["error"] is None
        assert SUPERSEDED._value.get() == before + 1
        assert await asyncio.to_thread(get, cluster, setup.namespace, "ConfigMap/slow") is None
