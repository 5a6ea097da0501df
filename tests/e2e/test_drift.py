"""What somebody deletes or changes by hand is put back, as a watch of the API server sees it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from support.platform import until

if TYPE_CHECKING:
    from support.platform import Platform

pytestmark = pytest.mark.timeout(1200)


def _deployment(platform: Platform) -> dict[str, Any]:
    items = platform.get("deployments", "-l", "reside.io/replica=greeter")["items"]
    running = [item for item in items if item["spec"]["replicas"]]
    assert len(running) == 1
    return running[0]


def test_a_deleted_deployment_is_put_back(platform: Platform) -> None:
    before = _deployment(platform)
    name, uid = before["metadata"]["name"], before["metadata"]["uid"]
    platform.kubectl("delete", "deployment", name, "--wait=false")
    restored = until(
        "the deployment's return",
        60,
        lambda: (d := platform.get("deployment", name)) and d["metadata"]["uid"] != uid and d,
    )
    assert restored["spec"]["template"]["spec"]["containers"] == before["spec"]["template"]["spec"]["containers"]
    until("the greeter's readiness", 60, lambda: platform.ready_pods("greeter"))


@pytest.mark.parametrize(
    "patch",
    [
        {"replicas": 3},
        {"template": {"spec": {"containers": [{"name": None, "image": "registry.reside.internal/other:latest"}]}}},
    ],
    ids=["replicas", "image"],
)
def test_a_changed_deployment_is_put_back(platform: Platform, patch: dict[str, Any]) -> None:
    before = _deployment(platform)
    name = before["metadata"]["name"]
    container = before["spec"]["template"]["spec"]["containers"][0]["name"]
    platform.kubectl(
        "patch", "deployment", name, "--patch", json.dumps({"spec": patch}).replace("null", f'"{container}"')
    )
    changed = before["metadata"]["generation"] + 1
    until(
        "the old spec's return",
        60,
        lambda: (
            (d := platform.get("deployment", name))["metadata"]["generation"] > changed and d["spec"] == before["spec"]
        ),
    )
    until("the greeter's readiness", 60, lambda: platform.ready_pods("greeter"))


@pytest.mark.parametrize("name", ["etcd", "jazz"])
def test_deleted_storage_is_restored_with_its_data(platform: Platform, name: str) -> None:
    listed = platform.replicas()
    uid = platform.get("statefulset", name)["metadata"]["uid"]
    platform.kubectl("delete", "statefulset", name, "--wait=false")
    until(
        "the StatefulSet's return", 90, lambda: (s := platform.get("statefulset", name)) and s["metadata"]["uid"] != uid
    )
    until("its pod's readiness", 120, lambda: platform.get("statefulset", name)["status"].get("readyReplicas") == 1)
    after = platform.replicas()
    assert {n: (r["id"], r["version"]) for n, r in after.items()} == {
        n: (r["id"], r["version"]) for n, r in listed.items()
    }
    # Its liveness may have failed while Jazz was away; what counts is that it comes back by itself.
    until("the greeter's return", 120, lambda: platform.replicas()["greeter"]["status"] == "running")
