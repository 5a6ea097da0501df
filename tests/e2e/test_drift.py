"""Objects that are deleted or changed manually are restored, as a watch of the API server shows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from support.eventually import eventually_sync

if TYPE_CHECKING:
    from support.platform import Platform

pytestmark = pytest.mark.timeout(1200)


def _deployment(platform: Platform) -> dict[str, Any]:
    items = platform.objects_of("greeter", "Deployment")
    running = [item for item in items if item["spec"]["replicas"]]
    assert len(running) == 1
    return running[0]


def test_a_deleted_deployment_is_restored(platform: Platform) -> None:
    before = _deployment(platform)
    name, uid = before["metadata"]["name"], before["metadata"]["uid"]
    platform.kubectl("delete", "deployment", name, "--wait=false")
    restored = eventually_sync(
        "the deployment's return",
        lambda: (d := platform.get("Deployment", name)) and d["metadata"]["uid"] != uid and d,
        within=60,
    )
    assert restored["spec"]["template"]["spec"]["containers"] == before["spec"]["template"]["spec"]["containers"]
    eventually_sync("the greeter's readiness", lambda: platform.ready_pods("greeter"), within=60)


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
        within=60,
    )
    eventually_sync("the greeter's readiness", lambda: platform.ready_pods("greeter"), within=60)


@pytest.mark.parametrize("name", ["etcd", "jazz"])
def test_deleted_storage_is_restored_with_its_data(platform: Platform, name: str) -> None:
    listed = platform.replicas()
    uid = platform.get("StatefulSet", name)["metadata"]["uid"]
    platform.kubectl("delete", "statefulset", name, "--wait=false")
    eventually_sync(
        "the StatefulSet's return",
        lambda: (s := platform.get("StatefulSet", name)) and s["metadata"]["uid"] != uid,
        within=90,
    )
    eventually_sync(
        "its pod's readiness", lambda: platform.get("StatefulSet", name)["status"].get("readyReplicas") == 1, within=120
    )
    after = platform.replicas()
    assert {n: (r["id"], r["version"]) for n, r in after.items()} == {
        n: (r["id"], r["version"]) for n, r in listed.items()
    }
    # Its liveness probe may have failed while Jazz was away; it must recover without help.
    eventually_sync("the greeter's return", lambda: platform.replicas()["greeter"]["status"] == "running", within=120)
