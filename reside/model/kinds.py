"""The Kubernetes kinds that a stack can contain, and how ReSide names them (docs/model.md, section 4)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """One kind: its API version, its REST plural, its collection in the Sentinel's contract and its permission stem.

    Attributes:
        optional: whether a Kubernetes cluster may lack its definition, or the Sentinel the right to manage it.
    """

    kind: str
    api_version: str
    plural: str
    collection: str
    permission: str
    optional: bool = False

    @property
    def manage(self) -> str:
        """Name of the permission to declare objects of this kind."""
        return f"{self.permission}:manage:all"

    @property
    def read(self) -> str:
        """Name of the permission to read live objects of this kind."""
        return f"{self.permission}:read:all"


KINDS: tuple[Kind, ...] = (
    Kind("Deployment", "apps/v1", "deployments", "deployments", "deployment"),
    Kind("StatefulSet", "apps/v1", "statefulsets", "statefulSets", "stateful-set"),
    Kind("Job", "batch/v1", "jobs", "jobs", "job"),
    Kind("Secret", "v1", "secrets", "secrets", "secret"),
    Kind("ConfigMap", "v1", "configmaps", "configMaps", "config-map"),
    Kind("Service", "v1", "services", "services", "service"),
    Kind("Ingress", "networking.k8s.io/v1", "ingresses", "ingresses", "ingress"),
    Kind("NetworkPolicy", "networking.k8s.io/v1", "networkpolicies", "networkPolicies", "network-policy"),
    Kind("PersistentVolumeClaim", "v1", "persistentvolumeclaims", "persistentVolumeClaims", "persistent-volume-claim"),
    Kind("ServiceAccount", "v1", "serviceaccounts", "serviceAccounts", "service-account"),
    Kind("Role", "rbac.authorization.k8s.io/v1", "roles", "roles", "role"),
    Kind("RoleBinding", "rbac.authorization.k8s.io/v1", "rolebindings", "roleBindings", "role-binding"),
    # Who may declare an Ingress may declare what takes its place
    Kind("HTTPRoute", "gateway.networking.k8s.io/v1", "httproutes", "httpRoutes", "ingress", optional=True),
)
PERMITTED: tuple[Kind, ...] = tuple(kind for kind in KINDS if not kind.optional)
"""The kinds that have permissions of their own."""
POD = Kind("Pod", "v1", "pods", "pods", "pod")
"""Pods are watched, but no stack contains one."""
EVENT = Kind("Event", "v1", "events", "events", "event")
"""Warnings are watched: nothing else in Kubernetes says which probe fails, or why a StatefulSet gets no pods."""
BY_KIND: dict[str, Kind] = {kind.kind: kind for kind in KINDS}
