"""Turns one desired-state stack into Pulumi resources: as data, and as an inline program.

Resources are made from manifests by token, so that the big generated SDK is neither installed nor imported. Every
object goes out under the field manager ``kubernetes-sentinel`` and is not awaited (health is the Sentinel's business).
pulumi itself is imported only when the program runs, so that the rest is free for everybody.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from reside.model.applied import as_applied, token

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import pulumi

    from reside.model.stacks import K8sObject

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


@dataclass(frozen=True)
class Resource:
    """A Kubernetes object as a Pulumi resource.

    Attributes:
        type: Pulumi's type token.
        name: Its name in the state, the object's.
        properties: Inputs; a Secret's values are among them, so they stand in no repr.
        secrets: Names of the inputs that are encrypted in the state.
    """

    type: str
    name: str
    properties: Mapping[str, Any] = field(repr=False)
    secrets: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Resources:
    """All resources of a stack, as data.

    Attributes:
        provider: Inputs of the Kubernetes provider, which is named like its package.
        version: Version of its plugin.
        parts: What workloads use.
        workloads: What is created after all parts.
    """

    provider: Mapping[str, str]
    version: str
    parts: tuple[Resource, ...]
    workloads: tuple[Resource, ...]


def resources(objects: Iterable[K8sObject], settings: ProviderSettings) -> Resources:
    """The resources that stand for ``objects``."""
    manifests = [as_applied(manifest, settings.namespace) for manifest in objects]
    return Resources(
        _provider(settings),
        settings.version,
        tuple(_resource(manifest) for manifest in manifests if manifest["kind"] not in _WORKLOADS),
        tuple(_resource(manifest) for manifest in manifests if manifest["kind"] in _WORKLOADS),
    )


def _provider(settings: ProviderSettings) -> dict[str, str]:
    properties = {
        "namespace": settings.namespace,
        "clusterIdentifier": f"reside/{settings.namespace}",
        "enableConfigMapMutable": "true",
        "enableSecretMutable": "true",
        "suppressDeprecationWarnings": "true",
    }
    return {**properties, "context": settings.context} if settings.context else properties


def _resource(manifest: K8sObject) -> Resource:
    secrets = frozenset({"data"}) if manifest["kind"] == "Secret" and "data" in manifest else frozenset[str]()
    return Resource(token(manifest), manifest["metadata"]["name"], manifest, secrets)


def program(objects: Iterable[K8sObject], settings: ProviderSettings) -> Callable[[], None]:
    """The same resources as an inline program of the Automation API.

    The Sentinel declares them without the SDK (reside/sentinel/engine/registering.py); a test sees that both make the
    same state.
    """
    found = resources(objects, settings)

    def run() -> None:
        import pulumi  # noqa: PLC0415 - see the module's docstring

        options = pulumi.ResourceOptions(version=found.version)
        provider = pulumi.ProviderResource("kubernetes", "kubernetes", dict(found.provider), options)

        def declare(resource: Resource, after: list[pulumi.Resource] | None = None) -> pulumi.Resource:
            hidden = {name: pulumi.Output.secret(resource.properties[name]) for name in resource.secrets}
            options = pulumi.ResourceOptions(provider=provider, version=found.version, depends_on=after)
            return pulumi.CustomResource(resource.type, resource.name, {**resource.properties, **hidden}, options)

        parts = [declare(resource) for resource in found.parts]
        for resource in found.workloads:
            declare(resource, parts)

    return run
