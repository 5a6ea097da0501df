"""The inline program that turns one desired-state stack into Pulumi resources.

Resources are made from manifests by token, so that the big generated SDK is neither installed nor imported. Every
object goes out under the field manager ``kubernetes-sentinel`` and is not awaited (health is the Sentinel's business).
pulumi itself is imported only when the program runs, so that :func:`as_applied` is free for everybody.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from reside.model.constants import FIELD_MANAGER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import pulumi

    from reside.model.stacks import K8sObject

ANNOTATIONS: Final = {
    "pulumi.com/patchFieldManager": FIELD_MANAGER,
    "pulumi.com/skipAwait": "true",
    "pulumi.com/deletionPropagationPolicy": "background",
}
"""How the provider shall treat each object.

Deletion in the background takes the object away at once and leaves its pods to the garbage collector. In the
foreground, the provider's default, most kinds are waited for, and those that are not (Deployment, StatefulSet, Job)
cannot be replaced: their successor is applied onto an object that is still going.
"""
_WORKLOADS = frozenset({"Deployment", "StatefulSet", "Job"})


@dataclass(frozen=True)
class ProviderSettings:
    """The Kubernetes provider of a stack: its plugin version, default namespace and kubeconfig context.

    The kubeconfig itself comes from the environment (KUBECONFIG), so that its place does not stand in the state, and
    the cluster's identity is the namespace's name: a moved API server never makes the engine replace all objects.
    """

    version: str
    namespace: str
    context: str | None = None


def as_applied(manifest: K8sObject, namespace: str) -> K8sObject:
    """The manifest as it is sent to the API server.

    Adds namespace and annotations; a Secret's ``stringData`` becomes ``data``, because server-side apply does not own
    what it wrote as ``stringData`` and would never remove a key. Whoever applies the same object by other means must
    send this form, or the two take fields from each other.
    """
    metadata = manifest.get("metadata") or {}
    annotations = {**(metadata.get("annotations") or {}), **ANNOTATIONS}
    result = {**manifest, "metadata": {**metadata, "namespace": namespace, "annotations": annotations}}
    strings = result.pop("stringData", None)
    if strings:
        encoded = {key: base64.b64encode(str(value).encode()).decode() for key, value in strings.items()}
        result["data"] = {**(result.get("data") or {}), **encoded}
    return result


def token(manifest: K8sObject) -> str:
    """Pulumi's type token of a manifest: ``kubernetes:apps/v1:Deployment``, ``kubernetes:core/v1:Secret``."""
    version = str(manifest["apiVersion"])
    return f"kubernetes:{version if '/' in version else f'core/{version}'}:{manifest['kind']}"


def program(objects: Iterable[K8sObject], settings: ProviderSettings) -> Callable[[], None]:
    """The Pulumi program that declares ``objects``; what workloads use is created before them."""
    manifests = [as_applied(manifest, settings.namespace) for manifest in objects]

    def run() -> None:
        provider = _provider(settings)
        parts = [_resource(m, provider, settings) for m in manifests if m["kind"] not in _WORKLOADS]
        for manifest in manifests:
            if manifest["kind"] in _WORKLOADS:
                _resource(manifest, provider, settings, parts)

    return run


def _provider(settings: ProviderSettings) -> pulumi.ProviderResource:
    import pulumi  # noqa: PLC0415 - see the module's docstring

    properties: dict[str, Any] = {
        "namespace": settings.namespace,
        "clusterIdentifier": f"reside/{settings.namespace}",
        "enableConfigMapMutable": "true",
        "enableSecretMutable": "true",
        "suppressDeprecationWarnings": "true",
    }
    if settings.context:
        properties["context"] = settings.context
    options = pulumi.ResourceOptions(version=settings.version)
    return pulumi.ProviderResource("kubernetes", "kubernetes", properties, options)


def _resource(
    manifest: K8sObject,
    provider: pulumi.ProviderResource,
    settings: ProviderSettings,
    after: list[pulumi.Resource] | None = None,
) -> pulumi.Resource:
    import pulumi  # noqa: PLC0415 - see the module's docstring

    properties = dict(manifest)
    if manifest["kind"] == "Secret" and "data" in properties:
        properties["data"] = pulumi.Output.secret(properties["data"])
    options = pulumi.ResourceOptions(provider=provider, version=settings.version, depends_on=after)
    return pulumi.CustomResource(token(manifest), manifest["metadata"]["name"], properties, options)
