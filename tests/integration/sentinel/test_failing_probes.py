"""The reason of a failing probe is read from the events of a real API server, which only the kubelet writes."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from support.eventually import eventually
from support.sentinel import DIGEST, kubectl, metadata, settings

from reside.local import ClusterInfo
from reside.model.constants import REPLICA_LABEL, VERSION_LABEL
from reside.sentinel.guard.guard import run_guard

pytestmark = pytest.mark.anyio

KEY = "Deployment/caller-2"


def deployment() -> dict[str, Any]:
    """Return a workload with a pod that a Kubernetes node without a kubelet gets, so that nothing happens to it."""
    meta = metadata("caller-2", "caller")
    meta["labels"] |= {REPLICA_LABEL: "caller", VERSION_LABEL: "2"}
    pod = {"nodeName": "nowhere", "containers": [{"name": "main", "image": f"example.internal/x@{DIGEST}"}]}
    template = {"metadata": {"labels": meta["labels"]}, "spec": pod}
    selector = {"matchLabels": {VERSION_LABEL: "2"}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta} | {
        "spec": {"replicas": 1, "selector": selector, "template": template}
    }


def event(pod: dict[str, Any], name: str, reason: str, message: str, last: str) -> dict[str, Any]:
    """Return an event about a pod, as the kubelet writes it."""
    found = pod["metadata"]
    about = {"kind": "Pod", "namespace": found["namespace"], "name": found["name"], "uid": found["uid"]}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": found["namespace"]},
        "involvedObject": about,
        "type": "Warning",
        "reason": reason,
        "message": message,
        "count": 9,
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": last,
        "source": {"component": "kubelet"},
    }


@pytest.mark.parametrize("is_restarted", [False, True])
async def test_a_failing_probe_is_the_problem_of_its_workload(
    cluster: ClusterInfo, namespace: str, tmp_path: Path, is_restarted: bool
) -> None:
    async def apply(manifest: dict[str, Any]) -> None:
        arguments = (cluster, "-n", namespace, "apply", "-f", "-")
        await asyncio.to_thread(kubectl, *arguments, stdin=json.dumps(manifest))

    async def pods() -> list[dict[str, Any]]:
        found = await asyncio.to_thread(kubectl, cluster, "-n", namespace, "get", "pods", "-o", "json")
        items: list[dict[str, Any]] = json.loads(found)["items"]
        return items

    async def fail() -> None:
        (pod,) = await eventually("the pod", pods)
        refused = "Startup probe failed: dial tcp 10.0.0.1:8080: connect: connection refused"
        await apply(event(pod, "other", "BackOff", refused, "2026-01-01T00:09:00Z"))
        await apply(event(pod, "probe", "Unhealthy", refused, "2026-01-01T00:00:01Z"))
        await apply(event(pod, "probe", "Unhealthy", refused, "2026-01-01T00:00:30Z"))

    chosen = settings(cluster, namespace, tmp_path).guard
    if is_restarted:
        await apply(deployment())
        await fail()
    async with run_guard(chosen) as guard:
        if not is_restarted:
            await apply(deployment())
            await eventually("the pod", lambda: guard.pods.count(KEY) == 1)
            await fail()
        expected = "Unhealthy: Startup probe failed: connection refused"
        await eventually("the problem", lambda: guard.pods.problem(KEY), lambda found: found == expected)
