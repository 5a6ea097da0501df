"""Create Secrets and the namespace, and wait for readiness.

Invariant: an existing Secret is never replaced, so a second run finds what the first one created.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from lightkube.core.exceptions import ApiError
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.apps_v1 import StatefulSet
from lightkube.resources.core_v1 import Namespace, Pod, Secret

from reside.access.client import is_missing
from reside.access.objects import read_secret
from reside.access.waiting import until
from reside.common.polling import Missing
from reside.model.constants import REPLICA_LABEL
from reside.model.errors import NotAllowed
from reside.seed.blocked import Blocked, is_lasting, refused_deployment, refused_pods, unbound_claim
from reside.seed.pod_problems import pod_problems

if TYPE_CHECKING:
    from collections.abc import Callable

    import lightkube


async def ensure_secret(client: lightkube.AsyncClient, definition: dict[str, Any]) -> dict[str, str]:
    """Create a Secret unless it exists; return its values."""
    name = definition["metadata"]["name"]
    existing = await read_secret(client, name)
    if existing is not None:
        return existing
    try:
        body: Any = Secret.from_dict(definition)
        await client.create(body)
    except ApiError as error:
        if error.status.code != HTTPStatus.CONFLICT:
            raise
    return await read_secret(client, name) or {}


async def ensure_namespace(client: lightkube.AsyncClient, name: str) -> None:
    """Create a namespace unless it exists.

    A user who must not create namespaces uses one that an administrator created.

    Raises:
        NotAllowed: it does not exist, and this user must not create it.
    """
    try:
        await client.create(Namespace(metadata=ObjectMeta(name=name)))
    except ApiError as error:
        if error.status.code not in (HTTPStatus.CONFLICT, HTTPStatus.FORBIDDEN):
            raise
        if error.status.code == HTTPStatus.FORBIDDEN and await _is_absent(client, name):
            raise NotAllowed(
                f"namespace {name} does not exist, and this user of Kubernetes may not create it: ask an administrator "
                f"for `kubectl create namespace {name}`"
            ) from None


async def _is_absent(client: lightkube.AsyncClient, name: str) -> bool:
    """Return whether a namespace is known to be absent; a user who may not read it does not know."""
    try:
        await client.get(Namespace, name)
    except ApiError as error:
        return is_missing(error)
    return False


async def wait_for_stateful_set(client: lightkube.AsyncClient, name: str, deadline: float) -> None:
    """Wait until all pods of a StatefulSet are ready."""

    async def check() -> None:
        try:
            found = await client.get(StatefulSet, name)
        except ApiError as error:
            if is_missing(error):
                raise Missing(f"no StatefulSet {name}") from None
            raise
        desired = (found.spec.replicas if found.spec else None) or 1
        ready = (found.status.readyReplicas if found.status else None) or 0
        if ready < desired:
            exist = (found.status.replicas if found.status else None) or 0
            refusal = await refused_pods(client, name) if exist < desired else None
            lasting = refusal if refusal is not None and await is_lasting(client, refusal) else None
            blocked.check(lasting or await unbound_claim(client, name))
            labels = (found.spec.selector.matchLabels if found.spec else None) or {}
            why = f" ({refusal})" if refusal else await pod_problems(client, labels)
            raise Missing(f"{ready} of {desired} pods are ready{why}")

    blocked = Blocked(name, deadline)
    await until(check, f"readiness of {name}", deadline)


async def wait_for_replica(client: lightkube.AsyncClient, name: str, deadline: float) -> None:
    """Wait until a pod of this replica is ready."""
    await _wait_for_pod(client, name, deadline, is_ready, "is ready")


async def wait_for_start(client: lightkube.AsyncClient, name: str, deadline: float) -> None:
    """Wait until a pod of this replica has passed its startup probe. Kubernetes sets it ready a second later."""
    await _wait_for_pod(client, name, deadline, has_started, "has started")


async def _wait_for_pod(
    client: lightkube.AsyncClient, name: str, deadline: float, is_there: Callable[[Pod], bool], state: str
) -> None:
    async def check() -> None:
        if not await _has_pod(client, name, is_there):
            blocked.check(await refused_deployment(client, name))
            raise Missing(f"no pod of {name} {state}{await pod_problems(client, {REPLICA_LABEL: name})}")

    blocked = Blocked(name, deadline)
    await until(check, f"the state that a pod of {name} {state}", deadline)


async def has_ready_pod(client: lightkube.AsyncClient, name: str) -> bool:
    """Return whether a pod of this replica is ready and not being deleted."""
    return await _has_pod(client, name, is_ready)


async def _has_pod(client: lightkube.AsyncClient, name: str, is_there: Callable[[Pod], bool]) -> bool:
    return any([is_there(pod) async for pod in client.list(Pod, labels={REPLICA_LABEL: name})])


def is_ready(pod: Pod) -> bool:
    """Return whether a pod is ready and not being deleted."""
    if pod.metadata and pod.metadata.deletionTimestamp is not None:
        return False
    conditions = (pod.status.conditions if pod.status else None) or []
    return any(c.type == "Ready" and c.status == "True" for c in conditions)


def has_started(pod: Pod) -> bool:
    """Return whether all containers of a pod have passed their startup probes, and it is not being deleted."""
    if pod.metadata and pod.metadata.deletionTimestamp is not None:
        return False
    containers = (pod.status.containerStatuses if pod.status else None) or []
    return bool(containers) and all(container.started for container in containers)
