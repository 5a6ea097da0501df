"""The state of an object and its reason, as the Sentinel reports them, on a real API server and its controllers."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from support.eventually import eventually
from support.live_objects import live_objects
from support.sentinel import kubectl, settings, workload

from reside.local import ClusterInfo
from reside.model.reports import ObjectReport
from reside.model.stacks import DesiredStack
from reside.sentinel.guard.guard import Guard, run_guard
from reside.sentinel.store.stacks import StackStore, StoredStack
from reside.sentinel.term.reports import StackState, compose

pytestmark = pytest.mark.anyio
OWNER = "co_zowner"


def reported(guard: Guard) -> dict[str, ObjectReport]:
    """Return the report of the stack's objects, as the leading Sentinel composes it."""
    state = StackState(
        "demo",
        None,
        guard.store.stacks["demo"],
        None,
        guard.repairer.problems,
        guard.cache.objects,
        pod_problem=guard.pods.problem,
        trouble=guard.troubles.of,
    )
    return compose(state).objects


async def test_the_state_of_a_workload_has_the_reason_of_its_controller_of_events_and_of_pods(
    cluster: ClusterInfo, namespace: str, tmp_path: Path
) -> None:
    """First a quota allows no pods. Then it allows them, and their images can't be pulled."""

    async def shell(*arguments: str, **more: Any) -> None:
        await asyncio.to_thread(kubectl, cluster, "-n", namespace, *arguments, **more)

    async def until(guard: Guard, expected: dict[str, tuple[str, str]]) -> None:
        """Wait until each of these objects has a state and a reason that begins like this."""

        def found() -> dict[str, tuple[Any, str]]:
            return {key: (each.state, each.reason or "") for key, each in reported(guard).items()}

        def is_expected(seen: dict[str, tuple[Any, str]]) -> bool:
            return all(
                key in seen and seen[key][0] == state and seen[key][1].startswith(reason)
                for key, (state, reason) in expected.items()
            )

        await eventually("the states", found, is_expected, show=str)

    async def pull() -> None:
        """Say of each pod what a kubelet says if its image can't be pulled."""

        def pods() -> list[dict[str, Any]]:
            return live_objects(cluster, namespace, "Pod")

        waiting = {"name": "main", "image": "x", "imageID": "", "ready": False, "restartCount": 0}
        waiting["state"] = {"waiting": {"reason": "ErrImagePull", "message": "not found"}}
        change = json.dumps({"status": {"phase": "Pending", "containerStatuses": [waiting]}})
        for pod in await eventually(
            "the pods", lambda: asyncio.to_thread(pods), lambda seen: len(seen) == 3, within=240
        ):
            await shell("patch", "pod", pod["metadata"]["name"], "--subresource=status", "--patch", change)

    objects = tuple(workload(kind, "web") for kind in ("Deployment", "StatefulSet", "Job"))
    stack = DesiredStack("demo", OWNER, objects)
    StackStore(tmp_path / "stacks").save(StoredStack("demo", OWNER).after_apply(stack))
    await shell("create", "quota", "none", "--hard=pods=0")
    chosen = settings(cluster, namespace, tmp_path).guard
    async with run_guard(chosen) as guard:
        guard.authority.lead()
        await until(
            guard,
            {
                "Deployment/web": ("failed", 'FailedCreate: pods "web-'),
                "StatefulSet/web": ("in-progress", "FailedCreate: exceeded quota: none"),
                "Job/web": ("in-progress", "FailedCreate: exceeded quota: none"),
            },
        )
        assert "exceeded quota: none" in str(reported(guard)["Deployment/web"].reason)
        await shell("delete", "quota", "none")
        await pull()
        pulls = ("in-progress", "ImagePullBackOff: not found")
        await until(guard, dict.fromkeys(("Deployment/web", "StatefulSet/web", "Job/web"), pulls))
