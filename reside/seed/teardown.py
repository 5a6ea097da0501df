"""Delete everything that ReSide manages in a namespace, to tear a cluster down.

Invariant: it needs only the Kubernetes API, because it deletes Alpha, Jazz and the Sentinel as well.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import httpx2  # lightkube does not wrap its errors
from lightkube import operators as lightkube_operators
from lightkube.codecs import resource_registry
from lightkube.core.exceptions import ApiError
from lightkube.generic_resource import create_namespaced_resource
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.core_v1 import ConfigMap, Pod
from lightkube.types import CascadeType

from reside.access.client import is_missing
from reside.access.waiting import until
from reside.common.polling import Missing
from reside.model.constants import FIELD_MANAGER, MANAGED_BY_LABEL, REPLICA_LABEL, TEARDOWN_MARKER
from reside.model.kinds import KINDS, Kind
from reside.seed import leftovers

if TYPE_CHECKING:
    import lightkube

_MANAGED: dict[str, Any] = {MANAGED_BY_LABEL: FIELD_MANAGER}
_REPLICAS: dict[str, Any] = {REPLICA_LABEL: lightkube_operators.exists()}
_LAST = "PersistentVolumeClaim"
"""Deleted last: a volume claim is deleted only when no pod uses it."""


async def tear_down(client: lightkube.AsyncClient, namespace: str, stop_first: str, deadline: float) -> None:
    """Delete everything that carries our label, the Sentinel first, and wait until the deletion is complete.

    Args:
        client: bound to the namespace.
        namespace: the namespace.
        stop_first: name of the replica that would create deleted objects again; a marker ConfigMap makes it stop.
        deadline: seconds to wait at most for each step.
    """
    await _mark(client, namespace)
    await _delete_all(client, Deployment, {REPLICA_LABEL: stop_first})

    async def stopped() -> None:
        remaining = 0
        async for deployment in client.list(Deployment, labels={REPLICA_LABEL: stop_first}):
            remaining += 1
            if deployment.metadata and deployment.metadata.deletionTimestamp is None:
                # It was created again before the Sentinel saw the marker
                await _delete(client, Deployment, str(deployment.metadata.name))
        remaining += len([pod async for pod in client.list(Pod, labels={REPLICA_LABEL: stop_first})])
        if remaining:
            raise Missing(f"{remaining} pods and Deployments of {stop_first} still exist")

    await until(stopped, f"the end of {stop_first}", deadline)
    certificates = await leftovers.certificates(client)
    await leftovers.delete_writers(client)
    for kind in sorted(await served_kinds(client), key=lambda k: k.kind == _LAST):
        await _delete_all(client, resource_class(kind), _MANAGED)

    async def deleted() -> None:
        remaining = await managed(client)
        pods: Any = Pod
        remaining += [
            f"Pod/{found.metadata.name}" async for found in client.list(pods, labels=_REPLICAS) if found.metadata
        ]
        if remaining:
            raise Missing("these objects still exist: " + ", ".join(remaining))

    await until(deleted, "the deletion of all objects that ReSide manages", deadline)
    await leftovers.delete_certificates(client, certificates, deadline)


async def managed(client: lightkube.AsyncClient) -> list[str]:
    """Return `Kind/name` of all objects that ReSide manages."""
    return [
        f"{kind.kind}/{found.metadata.name}"
        for kind in await served_kinds(client)
        async for found in client.list(resource_class(kind), labels=_MANAGED)
    ]


async def _mark(client: lightkube.AsyncClient, namespace: str) -> None:
    """Create the ConfigMap that marks the teardown for a running Sentinel; it is deleted with the other objects."""
    kind, _, name = TEARDOWN_MARKER.partition("/")
    metadata = {"name": name, "namespace": namespace, "labels": _MANAGED}
    marker: Any = ConfigMap.from_dict({"apiVersion": "v1", "kind": kind, "metadata": metadata})
    creation: Any = client.create(marker)
    try:
        await creation
    except ApiError as error:
        # Without a namespace there is nothing to delete
        if error.status.code != HTTPStatus.CONFLICT and not is_missing(error):
            raise


async def served_kinds(client: lightkube.AsyncClient) -> list[Kind]:
    """Return the kinds that Kubernetes serves, and that we may read if they are optional."""
    return [kind for kind in KINDS if not kind.optional or await _is_served(client, kind)]


async def _is_served(client: lightkube.AsyncClient, kind: Kind) -> bool:
    """Return whether Kubernetes has objects of an optional kind, and we may read them."""
    try:
        async for _ in client.list(resource_class(kind), labels=_MANAGED):
            return True
    except httpx2.HTTPStatusError as error:  # ApiError is one; an API that is not served at all responds without it
        if error.response.status_code in (HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN):
            return False
        raise
    return True


def resource_class(kind: Kind) -> Any:
    """Return lightkube's class of a kind."""
    if kind.optional:
        group, _, version = kind.api_version.partition("/")
        return create_namespaced_resource(group, version, kind.kind, kind.plural)
    return resource_registry.load(kind.api_version, kind.kind)


async def _delete_all(client: lightkube.AsyncClient, resource: Any, labels: Any) -> None:
    names = [found.metadata.name async for found in client.list(resource, labels=labels)]
    for name in names:
        await _delete(client, resource, name)


async def _delete(client: lightkube.AsyncClient, resource: Any, name: str) -> None:
    try:
        await client.delete(resource, name, cascade=CascadeType.BACKGROUND)
    except ApiError as error:
        if not is_missing(error):
            raise
