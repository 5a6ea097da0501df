"""Tell Kubernetes that a node has ended, so that its pods move to other nodes.

Kubernetes never replaces a pod of a StatefulSet, nor a pod that must run beside another one, while a node that does not
answer may still run it. Somebody who knows that nothing of the node runs says so with the taint
`node.kubernetes.io/out-of-service`: the node's pods are then deleted without its kubelet. Elsewhere this is an
administrator or the cloud's controller. Here it is this component of a local cluster with several nodes, which sees the
processes of all nodes: a node has *ended* if neither its kubelet nor a process of its pods runs.

A node whose kubelet alone has ended keeps its pods. The taint is removed when the kubelet runs again. `decide` is pure.
"""

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

import httpx2

from reside.common.backoff import Retries

USER = "reside:node-controller"
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
INTERVAL_SECONDS = 2.0
_VALUE = "ended"  # marks a taint of this component; an administrator's stays
_NODES = "/api/v1/nodes"
_log = logging.getLogger("reside.local.nodes")

Document = Mapping[str, Any]
Taints = list[dict[str, Any]]


def decide(nodes: Iterable[Document], ended: AbstractSet[str]) -> dict[str, Taints]:
    """Return the taints of the nodes that must get others.

    Args:
        nodes: the Kubernetes nodes.
        ended: names of the nodes of which no process runs.
    """
    changes = {}
    for node in nodes:
        taints: Taints = list(node["spec"].get("taints") or [])
        name, own = node["metadata"]["name"], [taint for taint in taints if _is_ours(taint)]
        if name in ended and not _is_ready(node) and not own:
            changes[name] = [*taints, {"key": OUT_OF_SERVICE, "value": _VALUE, "effect": "NoExecute"}]
        if name not in ended and own:
            changes[name] = [taint for taint in taints if taint not in own]
    return changes


def _is_ours(taint: Document) -> bool:
    return bool(taint["key"] == OUT_OF_SERVICE and taint.get("value") == _VALUE)


def _is_ready(node: Document) -> bool:
    conditions = node["status"].get("conditions") or []
    return any(item["type"] == "Ready" and item["status"] == "True" for item in conditions)


@dataclass
class NodeController:
    """Set and remove the taint.

    Args:
        client: HTTP client of the API server.
        ended: returns the names of the nodes of which no process runs.
    """

    client: httpx2.Client
    ended: Callable[[], AbstractSet[str]]
    _may_be_tainted: bool = field(default=True, init=False)

    def reconcile(self) -> None:
        """Compare processes and taints once. As long as all nodes run, this sends no request."""
        ended = self.ended()
        if not ended and not self._may_be_tainted:
            return
        nodes = {node["metadata"]["name"]: node for node in self._list()}
        for name, taints in decide(nodes.values(), ended).items():
            self._set(nodes[name], taints)
        self._may_be_tainted = bool(ended)

    def _list(self) -> list[Document]:
        items: list[Document] = self.client.get(_NODES).raise_for_status().json()["items"]
        return items

    def _set(self, node: Document, taints: Taints) -> None:
        """Replace the taints of a node, unless it has changed since it was read."""
        name, version = node["metadata"]["name"], node["metadata"]["resourceVersion"]
        response = self.client.patch(
            f"{_NODES}/{name}",
            json={"metadata": {"resourceVersion": version}, "spec": {"taints": taints}},
            headers={"Content-Type": "application/merge-patch+json"},
        )
        response.raise_for_status()
        _log.info("taints of %s: %s", name, ", ".join(taint["key"] for taint in taints) or "none")


def run(controller: NodeController, ready: threading.Event) -> None:
    """Reconcile every few seconds, forever; set `ready` after the first success.

    Nothing announces the end of a process to a process that is not its parent, so this polls.
    """
    retries, pause = Retries(), threading.Event()
    while True:
        try:
            controller.reconcile()
        except (httpx2.HTTPError, OSError) as error:
            wait = retries.failed()
            _log.warning("reconciliation failed, retry in %.1f s: %s", wait, error)
            pause.wait(wait)
        else:
            retries.succeeded()
            ready.set()
            pause.wait(INTERVAL_SECONDS)
