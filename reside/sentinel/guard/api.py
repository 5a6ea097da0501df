"""The Kubernetes API as the Sentinel uses it, over lightkube: objects are plain dicts, errors are ours.

Invariants: there is one field manager; every list and watch is limited to our namespace, and there to our managed-by
label, but for pods and warnings, which do not have it; an error contains only the message of the API's response,
truncated and masked.
"""

from __future__ import annotations

from contextlib import asynccontextmanager, contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import httpcore2  # noqa: F401 - else httpx2 imports it with the first client, for a tenth of a second of the event loop
import httpx2  # lightkube does not wrap its errors
import lightkube
import yaml
from lightkube import operators
from lightkube.core.exceptions import ApiError, ConfigError
from lightkube.core.selector import build_selector
from lightkube.generic_resource import GenericNamespacedResource, create_api_info
from lightkube.resources.core_v1 import PodLog
from lightkube.types import CascadeType, PatchType

from reside.common.masking import mask
from reside.common.turns import Turns
from reside.model.constants import FIELD_MANAGER, MANAGED_BY_LABEL
from reside.model.errors import InvalidInput
from reside.model.kinds import BY_KIND, EVENT, KINDS, POD, Kind
from reside.sentinel.errors import ClusterRefused, ClusterUnavailable
from reside.sentinel.objects.identity import metadata, split_key
from reside.sentinel.objects.masking import secret_values

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
    from pathlib import Path

    from reside.model.stacks import K8sObject

_FREQUENT: Final = "BackOff"
"""The reason of the most frequent warnings. They are not watched: pods themselves say that they crash in a loop."""
_OURS: Final[dict[str, Any]] = {MANAGED_BY_LABEL: FIELD_MANAGER}
_CHUNK: Final = 100
"""Objects of a response to a list: a thousand at once would hold up the event loop. All are of one version."""
_MESSAGE_LENGTH: Final = 600
_RETRYABLE: Final = frozenset({408, 429, 500, 502, 503, 504})
_TIMEOUT: Final = httpx2.Timeout(15.0)
_SERVER_TIMEOUT_S: Final = 240
"""Seconds after which the API server ends a watch, so that no connection is permanent."""


def _resource(kind: Kind) -> Any:
    """Return a dict-like resource class, made here because lightkube's registry has typed ones of the same name."""
    group, _, version = kind.api_version.rpartition("/")
    info = create_api_info(group, version, kind.kind, kind.plural)
    return type(kind.kind, (GenericNamespacedResource,), {"_api_info": info})


_RESOURCES: Final[dict[str, Any]] = {kind.kind: _resource(kind) for kind in (*KINDS, POD, EVENT)}


def _selectors(kind: Kind) -> dict[str, str]:
    """Return the parameters that select all objects of a kind that concern us."""
    if kind is EVENT:
        fields: dict[str, Any] = {"type": "Warning", "reason": operators.not_equal(_FREQUENT)}
        return {"fieldSelector": build_selector(fields, for_fields=True)}
    return {} if kind is POD else {"labelSelector": build_selector(_OURS)}


@contextmanager
def _translate_errors(what: str, sent: K8sObject | None = None) -> Iterator[None]:
    """Translate errors of lightkube and its HTTP client; mask `sent`, which the API server may quote."""
    try:
        yield
    except ApiError as error:
        status = int(error.status.code or 0)
        reason = mask(error.status.message or error.status.reason or "refused", secret_values([sent] if sent else []))
        message = f"{what}: {reason[:_MESSAGE_LENGTH]}"
        if status in _RETRYABLE:
            raise ClusterUnavailable(message) from None
        raise ClusterRefused(message, status) from None
    except httpx2.HTTPStatusError as error:
        status = error.response.status_code
        if status in _RETRYABLE:
            raise ClusterUnavailable(f"{what}: HTTP {status}") from None
        raise ClusterRefused(f"{what}: HTTP {status}", status) from None
    except httpx2.HTTPError as error:
        raise ClusterUnavailable(f"{what}: {type(error).__name__} {error}".rstrip()) from None


class KubernetesApi:
    """Access to the objects of one namespace.

    Args:
        client: the API client.
        namespace: the namespace.
    """

    def __init__(self, client: lightkube.AsyncClient, namespace: str) -> None:
        self._client = client
        self._turns = Turns()
        self.namespace = namespace

    async def get(self, key: str) -> K8sObject | None:
        """Return the object `Kind/name`, with any manager; None if it does not exist."""
        kind, name = split_key(key)
        try:
            with _translate_errors(f"get {key}"):
                found = await self._client.get(_RESOURCES[kind], name, namespace=self.namespace)
        except ClusterRefused as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return None
            raise
        return _plain(found, BY_KIND[kind])

    async def list_all(self, kind: Kind) -> tuple[list[K8sObject], str]:
        """Return all our objects of a kind, and the resource version to watch from.

        Lists of several kinds decode one response in each round of the event loop.
        """
        client: Any = self._client._client  # noqa: SLF001 - lightkube's own list decodes a response when it arrives
        objects: list[K8sObject] = []
        version, has_more = "", True
        with _translate_errors(f"list {kind.plural}"):
            request = client.prepare_request(
                "list", _RESOURCES[kind.kind], namespace=self.namespace, params={"limit": _CHUNK} | _selectors(kind)
            )
            while has_more:
                response = await client.send(client.build_adapter_request(request))
                await self._turns.take()
                has_more, version, chunk = client.handle_response("list", response, request)
                objects += [_plain(item, kind) for item in chunk]
        return objects, version

    async def list_pods(self, labels: Mapping[str, str]) -> list[K8sObject]:
        """Return our pods with these labels, as they are after every write before this call."""
        with _translate_errors("list pods"):
            found = self._client.list(_RESOURCES[POD.kind], namespace=self.namespace, labels={**_OURS, **labels})
            return [_plain(item, POD) async for item in found]

    async def log_end(
        self, pod: str, container: str, *, lines: int, size: int, since: str | None = None, stamped: bool = False
    ) -> bytes:
        """Return the last lines of a container's log, and of these at most the last `size` bytes.

        The log is read in pieces, because one line of it may be of any length.

        Args:
            pod: name of the pod.
            container: name of the container.
            lines: number of lines.
            size: number of bytes.
            since: a time in RFC 3339, in whole seconds, before which lines are left out.
            stamped: whether each line begins with its time.
        """
        client: Any = self._client._client  # noqa: SLF001 - lightkube's own method holds all of it in memory
        with _translate_errors(f"read the log of {pod}"):
            params: dict[str, Any] = {"container": container, "tailLines": lines}
            params |= {"sinceTime": since} if since is not None else {}
            params |= {"timestamps": "true"} if stamped else {}
            request = client.prepare_request("get", PodLog, name=pod, namespace=self.namespace, params=params)
            response = await client.send(client.build_adapter_request(request), stream=True)
            try:
                if response.is_error:
                    await response.aread()
                client.raise_for_status(response)
                end = bytearray()
                async for piece in response.aiter_bytes():
                    end += piece
                    del end[:-size]
                return bytes(end)
            finally:
                await response.aclose()

    async def watch(self, kind: Kind, version: str) -> AsyncGenerator[tuple[str, K8sObject], None]:
        """Yield events (`ADDED`, `MODIFIED`, `DELETED`) of our objects after the resource version `version`.

        An event `BOOKMARK`, about once a minute and before the end of each connection, has no object, but the version
        up to which everything was shown.
        """
        client: Any = self._client._client  # noqa: SLF001 - lightkube's own watch asks for no bookmarks
        params = {
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(_SERVER_TIMEOUT_S),
            "resourceVersion": version,
        } | _selectors(kind)
        with _translate_errors(f"watch {kind.plural}"):
            request = client.prepare_request(
                "list", _RESOURCES[kind.kind], namespace=self.namespace, watch=True, params=params
            )
            async for event, item in client.watch(request):
                yield event, _plain(item, kind)

    async def apply(self, obj: K8sObject) -> K8sObject:
        """Run a server-side apply that takes over conflicting fields; return the live object."""
        kind, name = obj["kind"], metadata(obj)["name"]
        with _translate_errors(f"apply {kind}/{name}", obj):
            return _plain(
                await self._client.patch(
                    _RESOURCES[kind],
                    name,
                    _RESOURCES[kind](obj),
                    namespace=self.namespace,
                    patch_type=PatchType.APPLY,
                    field_manager=FIELD_MANAGER,
                    force=True,
                ),
                BY_KIND[kind],
            )

    async def put_event(self, event: K8sObject) -> None:
        """Create an event, or replace it."""
        with _translate_errors("write an event"):
            await self._client.patch(
                _RESOURCES[EVENT.kind],
                metadata(event)["name"],
                _RESOURCES[EVENT.kind](event),
                namespace=self.namespace,
                patch_type=PatchType.APPLY,
                field_manager=FIELD_MANAGER,
                force=True,
            )

    async def set_managers(self, live: K8sObject, entries: list[dict[str, Any]]) -> K8sObject:
        """Replace an object's `managedFields`, unless it changed since `live` was read; return the live object."""
        kind, name = live["kind"], metadata(live)["name"]
        operations = [
            {"op": "test", "path": "/metadata/resourceVersion", "value": metadata(live)["resourceVersion"]},
            {"op": "replace", "path": "/metadata/managedFields", "value": entries},
        ]
        with _translate_errors(f"take over {kind}/{name}"):
            found = await self._client.patch(
                _RESOURCES[kind], name, operations, namespace=self.namespace, patch_type=PatchType.JSON
            )
            return _plain(found, BY_KIND[kind])

    async def delete(self, key: str, uid: str) -> None:
        """Delete an object and its dependents; succeed if it does not exist.

        Raises:
            ClusterRefused: the object has another uid (409), among others.
        """
        kind, name = split_key(key)
        client: Any = self._client._client  # noqa: SLF001 - lightkube's own delete sends no preconditions
        request = client.prepare_request("delete", _RESOURCES[kind], name=name, namespace=self.namespace)
        request.data = {"preconditions": {"uid": uid}, "propagationPolicy": CascadeType.BACKGROUND.value}
        try:
            with _translate_errors(f"delete {key}"):
                response = await client.send(client.build_adapter_request(request))
                client.handle_response("delete", response, request)
        except ClusterRefused as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise


@asynccontextmanager
async def connect(namespace: str, kubeconfig: Path | None, context: str | None = None) -> AsyncIterator[KubernetesApi]:
    """Connect to the API, with the pod's service account or with a kubeconfig.

    Raises:
        InvalidInput: the kubeconfig can't be used, or there is none and this process is not in a pod.
    """
    where = kubeconfig or "the pod's service account"
    try:
        read = lightkube.KubeConfig
        found = read.from_service_account() if kubeconfig is None else read.from_file(kubeconfig)
        config = found.get(context)
    except (ConfigError, OSError) as error:
        raise InvalidInput(f"Kubernetes can't be reached with {where}: {error}; set RESIDE_KUBECONFIG") from None
    except (yaml.YAMLError, ValueError, KeyError, TypeError, AttributeError):
        # The error's text is left out, because it quotes lines of the file, which contains credentials.
        raise InvalidInput(
            f"{where} is not a kubeconfig, or its context names a cluster or user that it does not define: "
            "set RESIDE_KUBECONFIG"
        ) from None
    if config is None:
        raise InvalidInput(f"context {context!r} is not in {kubeconfig}: set RESIDE_KUBE_CONTEXT")
    client = lightkube.AsyncClient(
        config=config, namespace=namespace, field_manager=FIELD_MANAGER, timeout=_TIMEOUT, trust_env=False
    )
    try:
        yield KubernetesApi(client, namespace)
    finally:
        await client.close()


def _plain(item: Any, kind: Kind) -> K8sObject:
    """Return a plain dict with `apiVersion` and `kind`, which items of a list do not have."""
    return {"apiVersion": kind.api_version, "kind": kind.kind} | dict(item)
