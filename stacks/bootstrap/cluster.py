"""Kubernetes objects as Pulumi resources of one explicit provider."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pulumi

from reside.model.applied import APPLY_ANNOTATIONS, token
from reside.model.constants import PROVIDER_VERSION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reside.seed.settings import BootstrapSettings

HANDED_OVER = ["metadata.labels", "spec", "rules", "roleRef", "subjects"]
"""Ignored by `pulumi up`, because the Sentinel's stack `platform` defines them after the hand-over."""


class Cluster:
    """The Kubernetes provider of one cluster, and the objects declared with it."""

    def __init__(self, settings: BootstrapSettings) -> None:
        config = {
            "kubeconfig": settings.kubeconfig,
            "context": settings.kube_context,
            "namespace": settings.namespace,
            "enableConfigMapMutable": "true",
            "enableSecretMutable": "true",
        }
        self.provider = pulumi.ProviderResource(
            "kubernetes",
            "cluster",
            {key: value for key, value in config.items() if value is not None},
            pulumi.ResourceOptions(version=PROVIDER_VERSION),
        )

    def object(
        self,
        definition: dict[str, Any],
        parent: pulumi.Resource,
        depends_on: Sequence[pulumi.Resource] = (),
    ) -> pulumi.CustomResource:
        """Declare a Kubernetes object as a resource."""
        return pulumi.CustomResource(
            token(definition),
            f"{definition['kind']}-{definition['metadata']['name']}".lower(),
            annotated(definition),
            pulumi.ResourceOptions(
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
