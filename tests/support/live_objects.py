"""Live objects of a cluster, read from its API server by this process: tests poll, and each kubectl uses 0.1 s of CPU.

Every read returns the object as the API server serves it, as a plain dict.
"""

from __future__ import annotations

from functools import cache, lru_cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import lightkube
import yaml
from lightkube.core.exceptions import ApiError
from lightkube.generic_resource import GenericGlobalResource, GenericNamespacedResource, create_api_info

from reside.model.kinds import BY_KIND

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reside.local import ClusterInfo

_CORE: Final = ("", "v1")
_APPS: Final = ("apps", "v1")
_NAMESPACED: Final = {
    "ConfigMap": _CORE,
    "Deployment": _APPS,
    "Event": _CORE,
    "PersistentVolumeClaim": _CORE,
    "Ingress": ("networking.k8s.io", "v1"),
    "Job": ("batch", "v1"),
    "NetworkPolicy": ("networking.k8s.io", "v1"),
    "Pod": _CORE,
    "ResourceQuota": _CORE,
    "Role": ("rbac.authorization.k8s.io", "v1"),
    "RoleBinding": ("rbac.authorization.k8s.io", "v1"),
    "Secret": _CORE,
    "Service": _CORE,
    "StatefulSet": _APPS,
}
_GLOBAL: Final = {"Namespace": _CORE, "PersistentVolume": _CORE}


def live_object(info: ClusterInfo, namespace: str, kind: str, name: str) -> dict[str, Any] | None:
    """Return the object; None if it does not exist. The namespace is ignored for kinds that have none."""
    client = _client(info)
    try:
        if kind in _GLOBAL:
            return dict(client.get(_global(kind), name))
        return dict(client.get(_namespaced(kind), name, namespace=namespace))
    except ApiError as error:
        if error.status.code == HTTPStatus.NOT_FOUND:
            return None
        raise


def live_objects(
    info: ClusterInfo, namespace: str, kind: str, labels: Mapping[str, str] | None = None
) -> list[dict[str, Any]]:
    """Return the objects of a kind that have these labels."""
    client = _client(info)
    if kind in _GLOBAL:
        return [dict(found) for found in client.list(_global(kind), labels=labels)]
    return [dict(found) for found in client.list(_namespaced(kind), namespace=namespace, labels=labels)]


def create_namespace(info: ClusterInfo, name: str) -> None:
    """Create a namespace."""
    _client(info).create(_global("Namespace")(metadata={"name": name}))


# Classes of our own, because lightkube's registry has typed classes for these kinds, which drop unknown members.
@cache
def _namespaced(kind: str) -> type[GenericNamespacedResource]:
    known = BY_KIND.get(kind)
    plural = f"{kind.lower()}s" if known is None else known.plural
    info = create_api_info(*_NAMESPACED[kind], kind, plural)
    return type(kind, (GenericNamespacedResource,), {"_api_info": info})


@cache
def _global(kind: str) -> type[GenericGlobalResource]:
    info = create_api_info(*_GLOBAL[kind], kind, f"{kind.lower()}s")
    return type(kind, (GenericGlobalResource,), {"_api_info": info})


def _client(info: ClusterInfo) -> lightkube.Client:
    return _client_of(info.kubeconfig.read_text(), info.context)


@lru_cache(maxsize=8)  # by content: a cluster that is created again in the same folder has another certificate
def _client_of(kubeconfig: str, context: str) -> lightkube.Client:
    config = lightkube.KubeConfig.from_dict(yaml.safe_load(kubeconfig)).get(context)
    return lightkube.Client(config=config, trust_env=False)
