"""What a cluster leaves in its namespace beside the objects that the Sentinel manages.

Secrets of certificates that cert-manager made for its Ingresses, Secrets that a command of the operator wrote, and
the marks of a restore. A Secret that somebody else wrote, also only in part, stays.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import httpx2
from lightkube import operators as selectors
from lightkube.core.exceptions import ApiError
from lightkube.generic_resource import create_namespaced_resource
from lightkube.resources.core_v1 import ConfigMap, Pod, Secret
from lightkube.resources.networking_v1 import Ingress

from reside.access.client import is_missing
from reside.access.objects import read
from reside.access.waiting import until
from reside.common.polling import Missing
from reside.model.constants import (
    CLUSTER_RECORD,
    FIELD_MANAGER,
    MANAGED_BY_LABEL,
    OPERATOR_MANAGER,
    REGISTRY_SECRET,
    RESTORE_LABEL,
    RESTORE_MARKER,
    STORE_SECRET,
)
from reside.seed import platform

if TYPE_CHECKING:
    import lightkube

_CERTIFICATE: Final = create_namespaced_resource("cert-manager.io", "v1", "Certificate", "certificates")
_CERTIFICATE_ANNOTATION: Final = "cert-manager.io/certificate-name"
_OPERATORS: Final = (REGISTRY_SECRET, STORE_SECRET)
_MARKS: Final = (CLUSTER_RECORD, RESTORE_MARKER)
_NO_CERTIFICATES: Final = (HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN)


async def certificates(client: lightkube.AsyncClient) -> list[str]:
    """Return the names of the Secrets with certificates of the cluster's Ingresses."""
    managed: dict[str, Any] = {MANAGED_BY_LABEL: FIELD_MANAGER}
    found = [ingress async for ingress in client.list(Ingress, labels=managed)]
    named = [tls.secretName for ingress in found if ingress.spec for tls in ingress.spec.tls or ()]
    return [name for name in named if name and await _is_certificate(client, name)]


async def delete_certificates(client: lightkube.AsyncClient, names: list[str], deadline: float) -> None:
    """Delete these Secrets once cert-manager does not make them again."""

    async def gone() -> None:
        for name in names:
            if await _has_certificate(client, name):
                raise Missing(f"Certificate {name} still exists")

    await until(gone, "the deletion of the certificates", deadline)
    for name in names:
        await _delete(client, Secret, name)


async def present(client: lightkube.AsyncClient) -> list[str]:
    """Return `Kind/name` of what `delete` deletes."""
    secrets = [f"Secret/{name}" for name in (*platform.SECRETS, *_OPERATORS) if await _is_ours(client, name)]
    marks = [f"ConfigMap/{name}" for name in _MARKS if await read(client, ConfigMap, name) is not None]
    return [*secrets, *marks, *(f"Pod/{name}" for name in await _writers(client))]


async def delete(client: lightkube.AsyncClient) -> None:
    """Delete the Secrets of the bootstrap and of the operator's commands, and all marks; ignore what does not exist."""
    for name in (*platform.SECRETS, *_OPERATORS):
        if await _is_ours(client, name):
            await _delete(client, Secret, name)
    for name in _MARKS:
        await _delete(client, ConfigMap, name)


async def delete_writers(client: lightkube.AsyncClient) -> None:
    """Delete the pods of an unfinished restore, which would keep its volumes."""
    for name in await _writers(client):
        await _delete(client, Pod, name)


async def _is_ours(client: lightkube.AsyncClient, name: str) -> bool:
    """Return whether a Secret exists and is the cluster's: an operator's is, if only our command wrote it."""
    secret = await read(client, Secret, name)
    if secret is None:
        return False
    return name not in _OPERATORS or {e.manager for e in secret.metadata.managedFields or ()} == {OPERATOR_MANAGER}


async def _has_certificate(client: lightkube.AsyncClient, name: str) -> bool:
    """Return whether cert-manager still has a Certificate. It may be gone itself, or not be ours to read."""
    try:
        await client.get(_CERTIFICATE, name)
    except ApiError as error:
        if error.status.code not in _NO_CERTIFICATES:
            raise
        return False
    except httpx2.HTTPStatusError as error:  # of an API server without this kind
        if error.response.status_code not in _NO_CERTIFICATES:
            raise
        return False
    return True


async def _is_certificate(client: lightkube.AsyncClient, name: str) -> bool:
    secret = await read(client, Secret, name)
    return secret is not None and (secret.metadata.annotations or {}).get(_CERTIFICATE_ANNOTATION) == name


async def _writers(client: lightkube.AsyncClient) -> list[str]:
    labels: dict[str, Any] = {RESTORE_LABEL: selectors.exists()}
    pods: Any = client.list(Pod, labels=labels)
    return [pod.metadata.name async for pod in pods if pod.metadata and pod.metadata.name]


async def _delete(client: lightkube.AsyncClient, kind: Any, name: str) -> None:
    try:
        await client.delete(kind, name)
    except ApiError as error:
        if not is_missing(error):
            raise
