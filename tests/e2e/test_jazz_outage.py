"""Jazz is down for a minute: replicas go on serving each other, and objects are still restored."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest
from e2e.calls import steady_calls
from e2e.pod_processes import killed_again_and_again
from support.eventually import eventually_sync

if TYPE_CHECKING:
    from support.platform import Platform

pytestmark = pytest.mark.timeout(1200)
OUTAGE_S = 60.0


def test_no_call_fails_while_jazz_is_down_for_a_minute_and_a_deleted_object_is_restored(platform: Platform) -> None:
    """No other container is restarted."""
    if "caller" not in platform.replicas():
        platform.load(platform.build("examples/replicas/caller", "v1"))
    jazz, before = platform.get("Pod", "jazz-0")["metadata"]["uid"], _restarts(platform)

    async def outage() -> None:
        began = anyio.current_time()
        with killed_again_and_again(jazz, b"server.mjs"):
            await anyio.to_thread.run_sync(_delete_deployment, platform, "caller")
            await anyio.sleep(began + OUTAGE_S - anyio.current_time())

    async def scenario() -> list[str]:
        async with steady_calls(platform, a_second=5) as outcome:
            await outage()
        return outcome.failures

    assert anyio.run(scenario) == []
    platform.kubectl("delete", "pod", "jazz-0", "--force", "--grace-period=0")  # its container is in back-off
    eventually_sync("the caller's readiness", lambda: platform.ready_pods("caller"), within=180)
    after = _restarts(platform)
    assert {name: after[name] for name in before.keys() & after.keys()} == {n: before[n] for n in before if n in after}


def _delete_deployment(platform: Platform, replica: str) -> None:
    """Delete the Deployment of a replica, and wait until it is restored."""
    (deployment,) = platform.objects_of(replica, "Deployment")
    platform.kubectl("delete", "deployment", deployment["metadata"]["name"], "--wait=false")
    eventually_sync(
        "the deployment's return",
        lambda: [d["metadata"]["uid"] for d in platform.objects_of(replica, "Deployment")],
        lambda found: len(found) == 1 and found != [deployment["metadata"]["uid"]],
        within=OUTAGE_S,
    )


def _restarts(platform: Platform) -> dict[str, int]:
    """Return how often the container of each pod was restarted, but for Jazz's."""
    pods = {pod["metadata"]["name"]: pod["status"].get("containerStatuses", ()) for pod in platform.objects("Pod")}
    return {name: sum(c["restartCount"] for c in found) for name, found in pods.items() if not name.startswith("jazz-")}
