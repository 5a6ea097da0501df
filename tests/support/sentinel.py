"""Support for tests of the Sentinel: namespaces, settings, objects and kubectl."""

import os
import subprocess
import uuid
from pathlib import Path
from typing import Any

from pydantic import SecretStr
from support.live_objects import create_namespace, live_object

from reside.local import ClusterInfo
from reside.local.toolchain import Toolchain
from reside.model.constants import FIELD_MANAGER, MANAGED_BY_LABEL, STACK_LABEL
from reside.sentinel.settings import SentinelSettings

DIGEST = "sha256:" + "0" * 64


def kubectl(info: ClusterInfo, *arguments: str, stdin: str | None = None, env: dict[str, str] | None = None) -> str:
    """Run kubectl and return its output."""
    done = subprocess.run(
        [Toolchain.default().find("kubectl"), "--kubeconfig", info.kubeconfig, "--context", info.context, *arguments],
        check=False,
        capture_output=True,
        text=True,
        input=stdin,
        timeout=60,
        env={**os.environ, **(env or {})},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def new_namespace(info: ClusterInfo) -> str:
    """Create a namespace and return its name."""
    name = f"t-{uuid.uuid4().hex[:10]}"
    create_namespace(info, name)
    return name


def settings(info: ClusterInfo, namespace: str, folder: Path, **more: Any) -> SentinelSettings:
    """Return settings of a Sentinel outside of the cluster; by default Jazz and etcd are unreachable."""
    values: dict[str, Any] = {
        "replica_name": "kubernetes-sentinel",
        "control_block_id": "co_znone",
        "account_id": "co_znone",
        "agent_secret": SecretStr("none"),
        "sync_server_url": "ws://127.0.0.1:9",
        "etcd_hosts": ("http://127.0.0.1:9",),
        "listen_host": "127.0.0.1",
        "listen_port": 0,
        "namespace": namespace,
        "state_dir": folder,
        "engine_passphrase": SecretStr("test-passphrase"),
        "kubeconfig": info.kubeconfig,
        "kube_context": info.context,
    }
    return SentinelSettings(**{**values, **more})


def metadata(name: str, stack: str = "demo", **annotations: str) -> dict[str, Any]:
    meta: dict[str, Any] = {"name": name, "labels": {MANAGED_BY_LABEL: FIELD_MANAGER, STACK_LABEL: stack}}
    return meta | ({"annotations": annotations} if annotations else {})


def config_map(name: str, stack: str = "demo", **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata(name, stack), "data": data}


def workload(kind: str, name: str, stack: str = "demo", **spec: Any) -> dict[str, Any]:
    """Return a Deployment, StatefulSet or Job; without a Kubernetes node its pods stay pending."""
    labels = {"app": name}
    container = {"name": "main", "image": f"example.internal/x@{DIGEST}", "env": [{"name": "A", "value": "1"}]}
    pod: dict[str, Any] = {"containers": [container]}
    body: dict[str, Any] = {"template": {"metadata": {"labels": labels}, "spec": pod}}
    if kind == "Job":
        pod["restartPolicy"] = "Never"
    else:
        body |= {"replicas": 1, "selector": {"matchLabels": labels}}
    if kind == "StatefulSet":
        body["serviceName"] = name
    version = "batch/v1" if kind == "Job" else "apps/v1"
    return {"apiVersion": version, "kind": kind, "metadata": metadata(name, stack), "spec": body | spec}


def service(name: str, stack: str = "demo") -> dict[str, Any]:
    spec = {"selector": {"app": name}, "ports": [{"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP"}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata(name, stack), "spec": spec}


def get(info: ClusterInfo, namespace: str, key: str) -> dict[str, Any] | None:
    """Return the live object `Kind/name`; None if there is none."""
    kind, _, name = key.partition("/")
    return live_object(info, namespace, kind, name)
