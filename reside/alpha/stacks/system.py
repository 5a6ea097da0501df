"""Additions to the pods of Alpha and the Sentinel. The bootstrap creates the objects that they refer to."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from reside.model import constants
from reside.model.constants import ENV_PREFIX
from reside.model.identities import resolved

if TYPE_CHECKING:
    from reside.model.cluster import ClusterSettings


_NO_TOPOLOGY: Final = "reside.io/no-node-has-this-label"
LEAVE_SECONDS: Final = 30
_DOCKER_CONFIG: Final = "/var/run/reside/registry"


@dataclass(frozen=True)
class Extras:
    """Additions to a pod: environment entries, volumes with mounts, members of its spec and security context."""

    env: list[dict[str, Any]] = field(default_factory=list)
    env_from: list[dict[str, Any]] = field(default_factory=list)
    volumes: list[dict[str, Any]] = field(default_factory=list)
    mounts: list[dict[str, Any]] = field(default_factory=list)
    pod: dict[str, Any] = field(default_factory=dict)
    security: dict[str, Any] = field(default_factory=dict)
    memory: str | None = None


def is_rendered(identity: str) -> bool:
    """Return whether replicas of this identity have Kubernetes objects. The seed has none: it is not started again."""
    return identity != resolved(constants.SEED_IDENTITY)


def extras(identity: str, cluster: ClusterSettings) -> Extras:
    """Return what pods of this identity need in addition to the pods of other replicas."""
    if identity == resolved(constants.ALPHA_IDENTITY):
        return _alpha(cluster)
    if identity == resolved(constants.SENTINEL_IDENTITY):
        return _sentinel(cluster)
    return Extras()


def namespace_env() -> dict[str, Any]:
    """Return the environment entry for `RESIDE_NAMESPACE`, with the pod's own namespace."""
    return {"name": "RESIDE_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}}


def secret_env(name: str, secret: str, key: str) -> dict[str, Any]:
    """Return an environment entry with a value from a Secret."""
    return {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}


def cluster_env(cluster: ClusterSettings) -> dict[str, str]:
    """Return the environment variables from which `AlphaSettings` reads the cluster's settings; not the namespace."""
    members = {member: value for member, value in cluster.model_dump(exclude={"namespace"}).items() if value}
    return {
        f"{ENV_PREFIX}{member.upper()}": value if isinstance(value, str) else json.dumps(value, sort_keys=True)
        for member, value in members.items()
    }


def _alpha(cluster: ClusterSettings) -> Extras:
    plain = [{"name": name, "value": value} for name, value in cluster_env(cluster).items()]
    claim = secret_env("RESIDE_CLAIM_CODE", constants.CLAIM_SECRET, constants.CLAIM_SECRET_KEY)
    claim["valueFrom"]["secretKeyRef"]["optional"] = True
    env = [namespace_env(), *plain, claim]
    volume, mount, folder = registry_login()
    return Extras(
        env=[*env, folder], volumes=[volume], mounts=[mount], pod={"tolerations": _short_tolerations()}, memory="128Mi"
    )


def _short_tolerations() -> list[dict[str, Any]]:
    """Return tolerations with which a pod leaves a dead node earlier than after Kubernetes' 5 minutes.

    Alpha can: it has no volume, and its lease allows one leader, even if the old pod still runs. The Sentinel can't
    start elsewhere before its old pod is gone, so it waits for the node.
    """
    keys = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
    rest = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": LEAVE_SECONDS}
    return [{"key": key, **rest} for key in keys]


def registry_login() -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Return volume, mount and environment entry that give a pod the Docker configuration of the cluster's Secret.

    The Secret is optional, so that Alpha starts without it and says which image it could not read. Alpha's pod always
    has the volume: the kubelet adds what is written to the Secret later, and Alpha reads it for each connection.
    """
    item = {"key": constants.REGISTRY_SECRET_KEY, "path": "config.json"}
    source = {"secretName": constants.REGISTRY_SECRET, "items": [item], "optional": True}
    return (
        {"name": "registry", "secret": source},
        {"name": "registry", "mountPath": _DOCKER_CONFIG, "readOnly": True},
        {"name": "DOCKER_CONFIG", "value": _DOCKER_CONFIG},
    )


def _sentinel(cluster: ClusterSettings) -> Extras:
    """Return the additions of the Sentinel.

    All its pods run on one node. In an update the new version becomes ready before the old one stops, because it is the
    Sentinel that starts and stops both, and a claim of mode ReadWriteOnce can be mounted on one node only. The first
    pod may run anywhere: the scheduler accepts a pod that only its own labels satisfy. When the node dies, the new pod
    waits until the old one is deleted. Since Kubernetes 1.32 the scheduler looks again after the deletion of a pod only
    if an anti-affinity matches that pod, and otherwise after 5 minutes. So there is one, by a label that no node has,
    which separates nothing.
    """
    own = {"labelSelector": {"matchLabels": {constants.REPLICA_LABEL: constants.SENTINEL_NAME}}}
    together, never = own | {"topologyKey": "kubernetes.io/hostname"}, own | {"topologyKey": _NO_TOPOLOGY}
    policy = json.dumps(cluster.policy, sort_keys=True)
    return Extras(
        env=[
            namespace_env(),
            *([{"name": "RESIDE_POLICY", "value": policy}] if cluster.policy else []),
            *({"name": name, "value": value} for name, value in _backend_env(cluster).items()),
            {"name": "RESIDE_STATE_DIR", "value": constants.SENTINEL_STATE_DIR},
            secret_env("RESIDE_ENGINE_PASSPHRASE", constants.ENGINE_SECRET, constants.ENGINE_SECRET_KEY),
        ],
        env_from=[{"secretRef": {"name": constants.STORE_SECRET, "optional": True}}] if _uses_store(cluster) else [],
        volumes=[{"name": "state", "persistentVolumeClaim": {"claimName": constants.SENTINEL_VOLUME_CLAIM}}],
        mounts=[{"name": "state", "mountPath": constants.SENTINEL_STATE_DIR}],
        pod={
            "serviceAccountName": constants.SENTINEL_SERVICE_ACCOUNT,
            "automountServiceAccountToken": True,
            "affinity": {
                "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [together]},
                "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [never]},
            },
        },
        security={"fsGroup": constants.NONROOT_USER},
        memory="128Mi",
    )


def _backend_env(cluster: ClusterSettings) -> dict[str, str]:
    """Return the environment variables that say where the Sentinel keeps states."""
    found = {"RESIDE_STATE_BACKEND": cluster.state_backend, "RESIDE_SECRETS_PROVIDER": cluster.secrets_provider}
    return {name: value for name, value in found.items() if value is not None}


def _uses_store(cluster: ClusterSettings) -> bool:
    """Return whether the Sentinel needs the credentials of an object store or of a key.

    The Secret is optional, since the Kubernetes node of the pod, or its ServiceAccount, may give the credentials.
    """
    return bool(_backend_env(cluster))
