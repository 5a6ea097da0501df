"""Pulumi programs for tests of the resident engine, with the cheapest resources that show an effect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pulumi
from integration.resident.sides import PROVIDER
from pulumi import ResourceOptions
from pulumi.dynamic import CreateResult, DiffResult, Resource, ResourceProvider, UpdateResult

if TYPE_CHECKING:
    from integration.resident.sides import Side


def kubernetes(side: Side, **properties: Any) -> pulumi.ProviderResource:
    """Return the Kubernetes provider on the side's namespace; ConfigMaps and Secrets change in place."""
    settings = {
        "namespace": side.namespace,
        "context": side.info.context,
        "clusterIdentifier": "one",
        "enableConfigMapMutable": "true",
        "enableSecretMutable": "true",
        **properties,
    }
    return pulumi.ProviderResource("kubernetes", "cluster", settings, ResourceOptions(version=PROVIDER))


def config_map(name: str, data: Any, options: ResourceOptions, object_name: str | None = None) -> pulumi.CustomResource:
    """Return a ConfigMap; `options` names the provider."""
    return _object("ConfigMap", name, {"data": data}, options, object_name or name)


def secret(name: str, data: Any, options: ResourceOptions) -> pulumi.CustomResource:
    """Return a Secret of plain values."""
    return _object("Secret", name, {"stringData": data}, options, name)


def _object(
    kind: str, name: str, body: dict[str, Any], options: ResourceOptions, object_name: str
) -> pulumi.CustomResource:
    properties = {"apiVersion": "v1", "kind": kind, "metadata": {"name": object_name}, **body}
    chosen = ResourceOptions.merge(ResourceOptions(version=PROVIDER), options)
    return pulumi.CustomResource(f"kubernetes:core/v1:{kind}", name, properties, chosen)


class Pair(pulumi.ComponentResource):
    """A component with two ConfigMaps, the second after the first."""

    def __init__(self, name: str, value: str, options: ResourceOptions) -> None:
        """Declare both."""
        super().__init__("test:index:Pair", name, None, options)
        own = ResourceOptions(parent=self)
        first = config_map(f"{name}-first", {"value": value}, own)
        config_map(f"{name}-second", {"value": value}, ResourceOptions(parent=self, depends_on=[first]))
        self.first = first.id
        self.register_outputs({"first": first.id})


def dynamic(name: str, **properties: Any) -> Resource:
    """Return a resource whose provider is Python code of the program; `key` replaces it, `value` updates it."""

    class Noted(ResourceProvider):
        """Returns its inputs as outputs; the value "refused" is an error of the provider."""

        def create(self, props: dict[str, Any]) -> CreateResult:
            if props.get("value") == "refused":
                raise ValueError("the provider refuses this value")
            return CreateResult(f"id-of-{props['key']}", {**props, "made": "yes"})

        def diff(self, _id: str, old: dict[str, Any], new: dict[str, Any]) -> DiffResult:
            changed = [name for name in ("key", "value") if old.get(name) != new.get(name)]
            return DiffResult(bool(changed), ["key"] if "key" in changed else [], delete_before_replace=False)

        def update(self, _id: str, _old: dict[str, Any], new: dict[str, Any]) -> UpdateResult:
            if new.get("value") == "refused":
                raise ValueError("the provider refuses this value")
            return UpdateResult({**new, "made": "again"})

    class Thing(Resource):
        made: pulumi.Output[str]

    return Thing(Noted(), name, {"made": None, **properties})
