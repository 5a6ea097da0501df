"""The Kubernetes objects of a backup: Secrets, and what the Sentinel needs to start. It makes all others again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.core_v1 import Pod, Secret

from reside.access.objects import read
from reside.model.constants import (
    CLAIM_SECRET,
    CLUSTER_RECORD,
    ETCD_NAME,
    FIELD_MANAGER,
    JAZZ_NAME,
    MANAGED_BY_LABEL,
    OPERATOR_MANAGER,
    REGISTRY_SECRET,
    REPLICA_LABEL,
    SENTINEL_NAME,
    SENTINEL_ROLES,
    SENTINEL_SERVICE_ACCOUNT,
    SENTINEL_VOLUME_CLAIM,
    STORE_SECRET,
)
from reside.model.kinds import BY_KIND
from reside.seed.teardown import resource_class, served_kinds

if TYPE_CHECKING:
    import lightkube

Document = dict[str, Any]

_STORAGE: Final = (JAZZ_NAME, ETCD_NAME)
NAMED: Final = {
    "Secret": (CLAIM_SECRET, REGISTRY_SECRET, STORE_SECRET),
    "ConfigMap": (CLUSTER_RECORD,),
    "PersistentVolumeClaim": (*_STORAGE, SENTINEL_VOLUME_CLAIM),
    "ServiceAccount": (SENTINEL_SERVICE_ACCOUNT,),
    "Role": SENTINEL_ROLES,
    "RoleBinding": SENTINEL_ROLES,
    "Service": _STORAGE,
    "StatefulSet": _STORAGE,
}
"""Objects of a backup beside the Secrets of replicas and the Sentinel's Deployment."""
_OF_OPERATORS: Final = (REGISTRY_SECRET, STORE_SECRET)
_KEPT: Final = ("name", "labels", "annotations")
_OF_KUBERNETES: Final = ("deployment.kubernetes.io/", "kubectl.kubernetes.io/", "pv.kubernetes.io/", "volume.")
"""Prefixes of annotations that Kubernetes writes."""
_ASSIGNED: Final = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "healthCheckNodePort", "volumeName")
"""Members of a spec that Kubernetes writes, and that another cluster may refuse."""
_OF_EACH_NAMESPACE: Final = ("ConfigMap/kube-root-ca.crt", "ServiceAccount/default")


async def saved_objects(client: lightkube.AsyncClient) -> list[Document]:
    """Return the objects of a backup as they can be applied to an empty namespace."""
    found: list[Any] = []
    managed: dict[str, Any] = {MANAGED_BY_LABEL: FIELD_MANAGER}
    found += [secret async for secret in client.list(Secret, labels=managed)]
    for kind, names in NAMED.items():
        found += [each for name in names if (each := await _read(client, kind, name)) is not None]
    running = client.list(Deployment, labels={REPLICA_LABEL: SENTINEL_NAME})
    found += [each async for each in running if each.spec and each.spec.replicas]
    return [_applicable(each) for each in found]


def of_kinds(objects: list[Document], *kinds: str) -> list[Document]:
    """Return the objects of these kinds, in the order of the kinds."""
    return [each for kind in kinds for each in objects if each["kind"] == kind]


async def apply(client: lightkube.AsyncClient, document: Document) -> None:
    """Create an object, or make it as the document says, as who wrote it first."""
    body = resource_class(BY_KIND[document["kind"]]).from_dict(document)
    is_operators = document["kind"] == "Secret" and document["metadata"]["name"] in _OF_OPERATORS
    await client.apply(body, field_manager=OPERATOR_MANAGER if is_operators else FIELD_MANAGER, force=True)


async def present(client: lightkube.AsyncClient) -> list[str]:
    """Return `Kind/name` of all objects that a cluster can have, without those that each namespace has."""
    found = [
        f"{kind.kind}/{each.metadata.name}"
        for kind in await served_kinds(client)
        async for each in client.list(resource_class(kind))
    ]
    pods: Any = Pod
    found += [f"Pod/{each.metadata.name}" async for each in client.list(pods)]
    return [key for key in found if key not in _OF_EACH_NAMESPACE]


async def _read(client: lightkube.AsyncClient, kind: str, name: str) -> Any:
    return await read(client, resource_class(BY_KIND[kind]), name)


def _applicable(found: Any) -> Document:
    document: Document = found.to_dict()
    metadata = {key: value for key, value in document.pop("metadata").items() if key in _KEPT}
    annotations = metadata.get("annotations", {})
    metadata["annotations"] = {
        name: value for name, value in annotations.items() if not name.startswith(_OF_KUBERNETES)
    }
    document.pop("status", None)
    document.pop("secrets", None)
    if "spec" in document:
        document["spec"] = {key: value for key, value in document["spec"].items() if key not in _ASSIGNED}
    kind = type(found).__name__
    return {**document, "apiVersion": BY_KIND[kind].api_version, "kind": kind, "metadata": metadata}
