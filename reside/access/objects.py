"""Kubernetes objects: read and write Secrets, read addresses of Services, identify the cluster, restart pods."""

from __future__ import annotations

import base64
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from lightkube.core.exceptions import ApiError
from lightkube.resources.core_v1 import Namespace, Pod, Secret, Service
from lightkube.types import PatchType

from reside.access.client import is_missing
from reside.common.polling import Missing

if TYPE_CHECKING:
    import lightkube


async def read(client: lightkube.AsyncClient, kind: Any, name: str) -> Any:
    """Return an object of the namespace; None if it does not exist."""
    try:
        return await client.get(kind, name)
    except ApiError as error:
        if is_missing(error):
            return None
        raise


async def read_secret(client: lightkube.AsyncClient, name: str) -> dict[str, str] | None:
    """Return the values of a Secret; None if it does not exist."""
    found = await read(client, Secret, name)
    if found is None:
        return None
    return {key: base64.b64decode(value).decode() for key, value in (found.data or {}).items()}


async def write_secret(client: lightkube.AsyncClient, name: str, values: dict[str, str]) -> None:
    """Set values of a Secret that exists; its other values stay."""
    await client.patch(Secret, name, {"stringData": values}, patch_type=PatchType.MERGE)


async def delete_pods(client: lightkube.AsyncClient, labels: dict[str, str]) -> None:
    """Delete the pods with these labels; their Deployment starts others."""
    found = [pod async for pod in client.list(Pod, labels=dict(labels))]
    for name in [pod.metadata.name for pod in found if pod.metadata and pod.metadata.name]:
        await client.delete(Pod, name)


async def cluster_uid(client: lightkube.AsyncClient) -> str | None:
    """Return a unique id of the Kubernetes cluster, independent of its address; None if we may not read it."""
    try:
        found = await client.get(Namespace, "kube-system")
    except ApiError as error:
        if error.status.code == HTTPStatus.FORBIDDEN:
            return None
        raise
    return found.metadata.uid if found.metadata else None


async def service_address(client: lightkube.AsyncClient, name: str) -> str:
    """Return the cluster IP address of a Service.

    Raises:
        Missing: the Service does not exist yet.
    """
    try:
        service = await client.get(Service, name)
    except ApiError as error:
        if is_missing(error):
            raise Missing(f"Service {name} does not exist") from None
        raise
    address = service.spec.clusterIP if service.spec else None
    if not address or address == "None":
        raise Missing(f"Service {name} has no cluster IP address")
    return address
