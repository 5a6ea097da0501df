"""What the seed asks of the Kubernetes API itself: Secrets, readiness, cluster addresses, and the final sweep.

Invariant: nothing here replaces a Secret that exists, so a second run finds what the first one made.
"""

from __future__ import annotations

import base64
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Literal

import httpx2
import lightkube
import yaml
from lightkube import operators as lightkube_operators
from lightkube.codecs import resource_registry
from lightkube.core.exceptions import ApiError, ConfigError
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.apps_v1 import Deployment, StatefulSet
from lightkube.resources.core_v1 import ConfigMap, Namespace, Pod, Secret, Service
from lightkube.types import CascadeType

from reside.model.constants import FIELD_MANAGER, MANAGED_BY_LABEL, REPLICA_LABEL
from reside.model.errors import InvalidInput, NotReady, ResideError
from reside.model.kinds import KINDS, Kind
from reside.seed.waiting import Missing, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

Access = Literal["in-cluster", "direct", "port-forward"]

_OURS: dict[str, Any] = {MANAGED_BY_LABEL: FIELD_MANAGER}
_REPLICAS: dict[str, Any] = {REPLICA_LABEL: lightkube_operators.exists()}
TEARDOWN_MARKER = "ConfigMap/reside-teardown"
"""While this object exists the Sentinel repairs, applies and deletes nothing; reside.sentinel.mirror says the same."""
_LAST = "PersistentVolumeClaim"
"""Deleted after the rest: a volume claim goes only when no pod uses it."""


@dataclass(frozen=True)
class Target:
    """Which cluster, and how it is reached.

    Args:
        namespace: the namespace that is the ReSide cluster.
        access: by names (in a pod), by cluster addresses, or by port-forward through the Kubernetes API.
        kubeconfig: path; None: the usual places.
        kube_context: the kubeconfig's context; None: its current one.
        deadline: seconds that one wait may take.
    """

    namespace: str
    access: Access
    kubeconfig: str | None
    kube_context: str | None
    deadline: float


@asynccontextmanager
async def connect(target: Target) -> AsyncIterator[lightkube.AsyncClient]:
    """A client of the cluster's API, bound to the target's namespace.

    Raises:
        InvalidInput: the kubeconfig or its context can't be used.
        ResideError: the API refused.
        NotReady: the API can't be reached, or something before it answered.
    """
    single = _chosen(target)
    client = lightkube.AsyncClient(config=single, namespace=target.namespace, field_manager=FIELD_MANAGER)
    try:
        yield client
    except ApiError as error:
        raise ResideError(f"Kubernetes at {single.cluster.server} refused: {error.status.message or error}") from None
    except httpx2.HTTPError as error:  # HTTPStatusError too: a refusal that is no Status, such as a proxy's page
        raise NotReady(
            f"Kubernetes at {single.cluster.server} can't be reached: {error or type(error).__name__}"
        ) from None
    finally:
        await client.close()


def _chosen(target: Target) -> lightkube.config.kubeconfig.SingleConfig:
    """The part of a kubeconfig that speaks of the target. No message quotes the file, since credentials stand in it."""
    where = f"kubeconfig {target.kubeconfig}" if target.kubeconfig else "the usual kubeconfig"
    try:
        if target.access == "in-cluster":
            config = lightkube.KubeConfig.from_service_account()
        elif target.kubeconfig is not None:
            config = lightkube.KubeConfig.from_file(target.kubeconfig)
        else:
            config = lightkube.KubeConfig.from_env()
        single = config.get(target.kube_context)
    except (ConfigError, OSError) as error:
        raise InvalidInput(f"{where} can't be used: {error}") from None
    except (yaml.YAMLError, UnicodeDecodeError):
        raise InvalidInput(f"{where} is not YAML: `kubectl config view` says where") from None
    except (AttributeError, LookupError, TypeError):
        raise InvalidInput(
            f"{where} is none, or its context names a cluster or user that it lacks: see `kubectl config view`"
        ) from None
    if single is None:
        raise InvalidInput(f"context {target.kube_context!r} is not in {where}")
    return single


def is_missing(error: ApiError) -> bool:
    """Whether the API said that there is no such object."""
    return error.status.code == HTTPStatus.NOT_FOUND


async def read_secret(client: lightkube.AsyncClient, name: str) -> dict[str, str] | None:
    """The values of a Secret; None if there is none."""
    try:
        found = await client.get(Secret, name)
    except ApiError as error:
        if is_missing(error):
            return None
        raise
    return {key: base64.b64decode(value).decode() for key, value in (found.data or {}).items()}


async def ensure_secret(client: lightkube.AsyncClient, manifest: dict[str, Any]) -> dict[str, str]:
    """Create a Secret unless it exists; returns the values that are there afterwards."""
    name = manifest["metadata"]["name"]
    kept = await read_secret(client, name)
    if kept is not None:
        return kept
    try:
        body: Any = Secret.from_dict(manifest)
        await client.create(body)
    except ApiError as error:
        if error.status.code != HTTPStatus.CONFLICT:
            raise
    return await read_secret(client, name) or {}


async def ensure_namespace(client: lightkube.AsyncClient, name: str) -> None:
    """Create a namespace unless it exists.

    Who may not create namespaces was given one; if it was not, the next step says so.
    """
    try:
        await client.create(Namespace(metadata=ObjectMeta(name=name)))
    except ApiError as error:
        if error.status.code not in (HTTPStatus.CONFLICT, HTTPStatus.FORBIDDEN):
            raise


async def cluster_uid(client: lightkube.AsyncClient) -> str | None:
    """What tells this Kubernetes from every other one, even behind the same address; None if we may not see it."""
    try:
        found = await client.get(Namespace, "kube-system")
    except ApiError as error:
        if error.status.code == HTTPStatus.FORBIDDEN:
            return None
        raise
    return found.metadata.uid if found.metadata else None


async def delete_secrets(client: lightkube.AsyncClient, names: tuple[str, ...]) -> None:
    """Delete Secrets; those that are gone already are fine."""
    for name in names:
        try:
            await client.delete(Secret, name)
        except ApiError as error:
            if not is_missing(error):
                raise


async def service_address(client: lightkube.AsyncClient, name: str) -> str:
    """The cluster address of a Service.

    Raises:
        Missing: the Service does not exist yet.
    """
    try:
        service = await client.get(Service, name)
    except ApiError as error:
        if is_missing(error):
            raise Missing(f"no Service {name}") from None
        raise
    address = service.spec.clusterIP if service.spec else None
    if not address or address == "None":
        raise Missing(f"Service {name} has no cluster address")
    return address


async def wait_for_stateful_set(client: lightkube.AsyncClient, name: str, deadline: float) -> None:
    """Wait until all pods of a StatefulSet are ready."""

    async def look() -> None:
        try:
            found = await client.get(StatefulSet, name)
        except ApiError as error:
            if is_missing(error):
                raise Missing(f"no StatefulSet {name}") from None
            raise
        wanted = (found.spec.replicas if found.spec else None) or 1
        ready = (found.status.readyReplicas if found.status else None) or 0
        if ready < wanted:
            raise Missing(f"{ready} of {wanted} pods are ready")

    await until(look, f"readiness of {name}", deadline)


async def wait_for_replica(client: lightkube.AsyncClient, name: str, deadline: float) -> None:
    """Wait until a pod of this replica is ready."""

    async def look() -> None:
        if not await has_ready_pod(client, name):
            raise Missing(f"no pod of {name} is ready")

    await until(look, f"a ready pod of {name}", deadline)


async def has_ready_pod(client: lightkube.AsyncClient, name: str) -> bool:
    """Whether a pod of this replica is ready, and not on its way out."""
    async for pod in client.list(Pod, labels={REPLICA_LABEL: name}):
        if pod.metadata and pod.metadata.deletionTimestamp is not None:
            continue
        conditions = (pod.status.conditions if pod.status else None) or []
        if any(c.type == "Ready" and c.status == "True" for c in conditions):
            return True
    return False


async def sweep(client: lightkube.AsyncClient, namespace: str, stop_first: str, deadline: float) -> None:
    """Delete everything that carries our label, the Sentinel first, and wait until it is gone.

    Args:
        client: bound to the namespace.
        namespace: the namespace.
        stop_first: name of the replica that would put back what is deleted; a marker tells it not to.
        deadline: seconds to wait at most for each step.
    """
    await _mark(client, namespace)
    await _delete_all(client, Deployment, {REPLICA_LABEL: stop_first})

    async def stopped() -> None:
        left = 0
        async for deployment in client.list(Deployment, labels={REPLICA_LABEL: stop_first}):
            left += 1
            if deployment.metadata and deployment.metadata.deletionTimestamp is None:
                await _delete(client, Deployment, str(deployment.metadata.name))  # put back before the marker was seen
        left += len([pod async for pod in client.list(Pod, labels={REPLICA_LABEL: stop_first})])
        if left:
            raise Missing(f"{left} pods and workloads of {stop_first} are left")

    await until(stopped, f"the end of {stop_first}", deadline)
    for kind in sorted(KINDS, key=lambda k: k.kind == _LAST):
        await _delete_all(client, _resource(kind), _OURS)

    async def gone() -> None:
        left = [
            f"{kind.kind}/{found.metadata.name}"
            for kind in KINDS
            async for found in client.list(_resource(kind), labels=_OURS)
        ]
        pods: Any = Pod
        left += [f"Pod/{found.metadata.name}" async for found in client.list(pods, labels=_REPLICAS) if found.metadata]
        if left:
            raise Missing("still there: " + ", ".join(left))

    await until(gone, "the end of all that ReSide manages", deadline)


async def _mark(client: lightkube.AsyncClient, namespace: str) -> None:
    """Tell a running Sentinel that the cluster is being destroyed; the marker goes with all the rest."""
    kind, _, name = TEARDOWN_MARKER.partition("/")
    metadata = {"name": name, "namespace": namespace, "labels": _OURS}
    marker: Any = ConfigMap.from_dict({"apiVersion": "v1", "kind": kind, "metadata": metadata})
    creating: Any = client.create(marker)
    try:
        await creating
    except ApiError as error:
        if error.status.code != HTTPStatus.CONFLICT and not is_missing(error):  # no namespace: nothing to destroy
            raise


def _resource(kind: Kind) -> Any:
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
