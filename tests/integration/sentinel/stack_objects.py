"""Objects that tests of the Sentinel declare, and what is live of them."""

import asyncio
import json
from typing import Any

from integration.sentinel.setup import Setup
from prometheus_client import REGISTRY
from support.sentinel import get, kubectl, metadata

from reside.local import ClusterInfo
from reside.model.constants import SECRET_REFERENCES_ANNOTATION


async def live(cluster: ClusterInfo, setup: Setup, key: str) -> dict[str, Any] | None:
    return await asyncio.to_thread(get, cluster, setup.namespace, key)


def secret(name: str, target: str, stack: str = "demo") -> dict[str, Any]:
    references = {SECRET_REFERENCES_ANNOTATION: json.dumps({"agentSecret": target})}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata(name, stack, **references),
        "type": "Opaque",
        "stringData": {"accountId": "co_zaccount"},
    }


def claim(name: str, stack: str = "demo") -> dict[str, Any]:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata(name, stack), "spec": spec}


async def secret_value(cluster: ClusterInfo, setup: Setup, name: str, member: str = "agentSecret") -> str:
    """Return a value of a live Secret."""
    template = f"go-template={{{{.data.{member} | base64decode}}}}"
    return await asyncio.to_thread(kubectl, cluster, "-n", setup.namespace, "get", "secret", name, "-o", template)


def metric(name: str, **labels: str) -> float:
    """Return a metric of the Sentinel in this process; 0 before its first value."""
    return REGISTRY.get_sample_value(f"reside_sentinel_{name}", labels) or 0.0
