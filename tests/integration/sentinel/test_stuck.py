"""What is stuck delays no fresh change: deletions that do not end, and entries that can not be read."""

import asyncio
import json
from typing import Any

import pytest
from integration.sentinel.setup import Setup
from support.eventually import eventually
from support.sentinel import config_map, get, kubectl

from reside.jazz import Credentials
from reside.local import ClusterInfo

pytestmark = pytest.mark.anyio
_STUCK = 10
_UNREADABLE = 100


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
        report = await alpha.applied(await alpha.declare("fresh", config_map("fresh", "fresh", x="1")))
        assert report["error"] is None
        assert await asyncio.to_thread(get, cluster, setup.namespace, "ConfigMap/fresh")
        waiting = await alpha.report("stuck-0", lambda now: now)
        assert waiting["revision"] is None
        assert "example.com/never" in waiting["ConfigMap/stuck-0"]["problem"]
        await alpha.report("unread-0", lambda now: "can't be read" in (now.get("error") or ""))

        free = json.dumps({"metadata": {"finalizers": None}})
        for number in range(_STUCK):
            name = f"stuck-{number}"
            await asyncio.to_thread(
                kubectl, cluster, "-n", setup.namespace, "patch", "configmap", name, "--type=merge", "--patch", free
            )
        await eventually("the end of the deletions", lambda: _settled(alpha))


async def _settled(alpha: Any) -> bool:
    reports = [await alpha.node.load_map(alpha.reports[f"stuck-{number}"]) for number in range(_STUCK)]
    return all(report.get("revision") and "ConfigMap/stuck" not in str(report.as_dict()) for report in reports)
