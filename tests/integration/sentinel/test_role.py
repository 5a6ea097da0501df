"""The role that the bootstrap gives the Sentinel is sufficient for every kind."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from integration.sentinel.setup import Setup
from integration.sentinel.stack_objects import live, secret
from support.eventually import eventually
from support.gateway import install_definitions
from support.live_objects import live_objects
from support.sentinel import config_map, kubectl, metadata, service, workload

from reside.local import ClusterInfo
from reside.model.cluster import ClusterSettings
from reside.model.ingress import domain_ingress
from reside.model.kinds import BY_KIND
from reside.seed import platform

pytestmark = pytest.mark.anyio


ROUTED = ClusterSettings(namespace="test", domain="web.test", gateway="edge/public")


async def test_the_role_that_the_bootstrap_creates_is_sufficient(cluster: ClusterInfo, setup: Setup) -> None:
    """With the ServiceAccount of the platform alone, every kind is applied, restored, and deleted."""
    await asyncio.to_thread(install_definitions, cluster)
    for manifest in platform.sentinel_access(setup.namespace, routes=True):
        await asyncio.to_thread(kubectl, cluster, "apply", "--server-side", "-f", "-", stdin=json.dumps(manifest))
    chosen = setup.settings.model_copy(update={"kubeconfig": await _kubeconfig(cluster, setup), "kube_context": "pod"})
    async with replace(setup, settings=chosen).running():
        alpha = await setup.alpha()
        objects = [config_map("a", x="1"), service("web"), *_one_of_each_other_kind(), secret("s", "co_znone")]
        objects[-1]["metadata"]["annotations"] = {}
        objects += [workload(kind, f"w-{kind.lower()}") for kind in ("Deployment", "StatefulSet", "Job")]
        assert {manifest["kind"] for manifest in objects} == set(BY_KIND)
        report = await alpha.applied(await alpha.declare("demo", *objects))
        assert report["error"] is None
        edit = {"data": {"x": "2", "y": "added"}}
        await asyncio.to_thread(
            kubectl, cluster, "-n", setup.namespace, "patch", "configmap", "a", "--patch", json.dumps(edit)
        )
        await eventually(
            "the repair of the object",
            lambda: live(cluster, setup, "ConfigMap/a"),
            lambda found: found is not None and found["data"] == {"x": "1"},
        )
        await eventually("the event about it", lambda: asyncio.to_thread(repairs, cluster, setup.namespace))
        reverted = await asyncio.to_thread(live_objects, cluster, setup.namespace, "Event")
        kinds = {event["involvedObject"]["kind"] for event in reverted if event["reason"] == "Reverted"}
        assert kinds == {"ConfigMap"}, "what the API server adds to an object is no drift"
        alpha.desired.delete("demo")
        await eventually("the end of the stack", lambda: "demo" not in alpha.reports)


def repairs(cluster: ClusterInfo, namespace: str) -> list[str]:
    """Return the messages of the events about repairs."""
    found = live_objects(cluster, namespace, "Event")
    return [event["message"] for event in found if event["reason"] == "Reverted"]


async def _kubeconfig(cluster: ClusterInfo, setup: Setup) -> Path:
    """Return a kubeconfig with the token of the platform's ServiceAccount, as a pod has it."""
    given = json.loads(await asyncio.to_thread(kubectl, cluster, "config", "view", "--raw", "--minify", "-o", "json"))
    name = "kubernetes-sentinel"
    token = await asyncio.to_thread(kubectl, cluster, "-n", setup.namespace, "create", "token", name)
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "pod", "cluster": given["clusters"][0]["cluster"]}],
        "users": [{"name": "pod", "user": {"token": token.strip()}}],
        "contexts": [{"name": "pod", "context": {"cluster": "pod", "user": "pod", "namespace": setup.namespace}}],
        "current-context": "pod",
    }
    path = setup.settings.state_dir / "kubeconfig"
    path.write_text(json.dumps(document))
    return path


def _one_of_each_other_kind() -> list[dict[str, Any]]:
    group = "rbac.authorization.k8s.io"
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]
    subjects = [{"kind": "ServiceAccount", "name": "web"}]
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    path = {"path": "/replicas/demo/", "pathType": "Prefix", "backend": backend}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}
    specs: list[tuple[str, dict[str, Any]]] = [
        ("ServiceAccount", {}),
        ("Role", {"rules": rules}),
        ("RoleBinding", {"roleRef": {"apiGroup": group, "kind": "Role", "name": "web"}, "subjects": subjects}),
        ("Ingress", {"spec": {"rules": [{"host": "web.test", "http": {"paths": [path]}}]}}),
        ("HTTPRoute", {"spec": domain_ingress({}, ROUTED, path)["spec"]}),
        ("NetworkPolicy", {"spec": {"podSelector": {}, "policyTypes": ["Ingress"]}}),
        ("PersistentVolumeClaim", {"spec": claim}),
    ]
    return [
        {"apiVersion": BY_KIND[kind].api_version, "kind": kind, "metadata": metadata("web"), **body}
        for kind, body in specs
    ]
