"""Kubernetes objects as Pulumi resources of one explicit provider."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pulumi
from pulumi_kubernetes import Provider
from pulumi_kubernetes.apps.v1 import StatefulSet
from pulumi_kubernetes.core.v1 import PersistentVolumeClaim, Service, ServiceAccount
from pulumi_kubernetes.rbac.v1 import Role, RoleBinding

from reside.model.applied import APPLY_ANNOTATIONS
from reside.model.constants import PROVIDER_VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from reside.seed.settings import BootstrapSettings

HANDED_OVER = ["metadata.labels", "spec", "rules", "roleRef", "subjects"]
"""Ignored by `pulumi up`, because the Sentinel's stack `platform` defines them after the hand-over."""


KINDS: Final[dict[str, Callable[..., pulumi.CustomResource]]] = {
    "PersistentVolumeClaim": PersistentVolumeClaim,
    "Role": Role,
    "RoleBinding": RoleBinding,
    "Service": Service,
    "ServiceAccount": ServiceAccount,
    "StatefulSet": StatefulSet,
}
"""The kinds that the bootstrap declares; `reside.seed.platform` defines the objects."""
_ARGUMENTS: Final = {"apiVersion": "api_version", "roleRef": "role_ref"}


class Cluster:
    """The Kubernetes provider of one cluster, and the objects declared with it."""

    def __init__(self, settings: BootstrapSettings) -> None:
        self.provider = Provider(
            "cluster",
            kubeconfig=settings.kubeconfig,
            context=settings.kube_context,
            namespace=settings.namespace,
            enable_config_map_mutable=True,
            enable_secret_mutable=True,
            opts=pulumi.ResourceOptions(version=PROVIDER_VERSION),
        )

    def object(
        self,
        definition: dict[str, Any],
        parent: pulumi.Resource,
        depends_on: Sequence[pulumi.Resource] = (),
    ) -> pulumi.CustomResource:
        """Declare a Kubernetes object as a resource of its type."""
        return KINDS[definition["kind"]](
            f"{definition['kind']}-{definition['metadata']['name']}".lower(),
            **{_ARGUMENTS.get(member, member): value for member, value in annotated(definition).items()},
            opts=pulumi.ResourceOptions(
                parent=parent,
                provider=self.provider,
                depends_on=list(depends_on),
                ignore_changes=HANDED_OVER,
                version=PROVIDER_VERSION,
            ),
        )


def annotated(definition: dict[str, Any]) -> dict[str, Any]:
    """Return the object with the annotations that every object of the bootstrap carries."""
    metadata = definition["metadata"]
    return {
        **definition,
        "metadata": {**metadata, "annotations": {**metadata.get("annotations", {}), **APPLY_ANNOTATIONS}},
    }
