"""Objects that are deleted or changed manually are restored, as a watch of the API server shows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from support.eventually import eventually_sync

from reside.cli.cluster import DEFAULT_ACCOUNT

if TYPE_CHECKING:
    from support.platform import Platform

pytestmark = pytest.mark.timeout(1200)


def _deployment(platform: Platform) -> dict[str, Any]:
    """Return the greeter's Deployment; that of an earlier version may be ending."""

    def running() -> list[dict[str, Any]]:
        return [item for item in platform.objects_of("greeter", "Deployment") if item["spec"]["replicas"]]

    (found,) = eventually_sync("one Deployment with pods", running, lambda seen: len(seen) == 1)
    return found


def test_a_deleted_deployment_is_restored(platform: Platform) -> None:
    before = _deployment(platform)
    name, uid = before["metadata"]["name"], before["metadata"]["uid"]
    platform.kubectl("delete", "deployment", name, "--wait=false")
    restored = eventually_sync(
        "the deployment's return",
        lambda: (d := platform.get("Deployment", name)) and d["metadata"]["uid"] != uid and d,
        within=180,
    )
    assert restored["spec"]["template"]["spec"]["containers"] == before["spec"]["template"]["spec"]["containers"]
    eventually_sync("the greeter's readiness", lambda: platform.ready_pods("greeter"), within=180)


@pytest.mark.parametrize(
    "patch",
    [
        {"replicas": 3},
        {"template": {"spec": {"containers": [{"name": None, "image": "registry.reside.internal/other:latest"}]}}},
    ],
    ids=["replicas", "image"],
)
def test_a_changed_deployment_is_reverted(platform: Platform, patch: dict[str, Any]) -> None:
    before = _deployment(platform)
    name = before["metadata"]["name"]
    container = before["spec"]["template"]["spec"]["containers"][0]["name"]
    platform.kubectl(
        "patch", "deployment", name, "--patch", json.dumps({"spec": patch}).replace("null", f'"{container}"')
    )
    changed = before["metadata"]["generation"] + 1
    eventually_sync(
        "the old spec's return",
        lambda: (
            (d := platform.get("Deployment", name))["metadata"]["generation"] > changed and d["spec"] == before["spec"]
        ),
        within=180,
    )
    eventually_sync("the greeter's readiness", lambda: platform.ready_pods("greeter"), within=180)


def test_describe_tells_the_states_of_the_objects_and_what_was_changed_back(platform: Platform) -> None:
    """The administrator has no permission on the Sentinel at first; the command says which one is missing."""
    (me,) = {account for name, account in platform.accounts().items() if name == DEFAULT_ACCOUNT}
    eventually_sync(
        "the end of rights that tests before had",
        lambda: platform.reside("replica", "describe", "greeter").stderr,
        lambda said: "deployment:read:all" in said,
        within=60,
    )
    platform.reside("permission", "grant", me, "kubernetes-sentinel", "deployment:read:all", "--reason", "on call")
    name = _deployment(platform)["metadata"]["name"]
    platform.kubectl("patch", "deployment", name, "--patch", '{"spec": {"paused": true}}')

    def reported() -> dict[str, Any]:
        described = json.loads(platform.reside("replica", "describe", "greeter", "--output", "json").stdout)
        return ((described["report"] or {}).get(f"Deployment/{name}")) or {}

    found = eventually_sync(
        "the report", reported, lambda now: "kubectl-patch changed spec.paused" in str(now), within=120
    )
    assert found["status"] == "updated"
    lines = platform.reside("replica", "describe", "greeter").stdout.splitlines()
    assert lines[0].startswith("greeter (id ")
    assert f"  Deployment/{name}: kubectl-patch changed spec.paused" in lines
    assert any(line.startswith(f"Deployment/{name} ") for line in lines)


@pytest.mark.parametrize("name", ["etcd", "jazz"])
def test_deleted_storage_is_restored_with_its_data(platform: Platform, name: str) -> None:
    listed = platform.replicas()
    uid = platform.get("StatefulSet", name)["metadata"]["uid"]
    platform.kubectl("delete", "statefulset", name, "--wait=false")
    eventually_sync(
        "the StatefulSet's return",
        lambda: (s := platform.get("StatefulSet", name)) and s["metadata"]["uid"] != uid,
        within=180,
    )
    eventually_sync(
        "its pod's readiness", lambda: platform.get("StatefulSet", name)["status"].get("readyReplicas") == 1, within=240
    )
    after = platform.replicas()
    assert {n: (r["id"], r["version"]) for n, r in after.items()} == {
        n: (r["id"], r["version"]) for n, r in listed.items()
    }
    # Its liveness probe may have failed while Jazz was away; it must recover without help.
    eventually_sync("the greeter's return", lambda: platform.replicas()["greeter"]["status"] == "running", within=240)
