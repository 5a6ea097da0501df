"""Additions to the pods of Alpha and the Sentinel. The bootstrap creates the objects that they refer to."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from reside.model import constants
from reside.model.constants import ENV_PREFIX

if TYPE_CHECKING:
    from reside.model.cluster import ClusterSettings


@dataclass(frozen=True)
class Extras:
    """Additions to a pod: environment entries, volumes with mounts, members of its spec and security context."""

    env: list[dict[str, Any]] = field(default_factory=list)
    volumes: list[dict[str, Any]] = field(default_factory=list)
    mounts: list[dict[str, Any]] = field(default_factory=list)
    pod: dict[str, Any] = field(default_factory=dict)
    security: dict[str, Any] = field(default_factory=dict)
    memory: str | None = None


def is_rendered(identity: str) -> bool:
    """Return whether replicas of this identity have Kubernetes objects. The seed has none: it is not started again."""
    return identity != constants.SEED_IDENTITY


def extras(identity: str, cluster: ClusterSettings) -> Extras:
    """Return what pods of this identity need in addition to the pods of other replicas."""
    if identity == constants.ALPHA_IDENTITY:
        return _alpha(cluster)
    if identity == constants.SENTINEL_IDENTITY:
        return _sentinel()
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
    return Extras(env=[namespace_env(), *plain, claim], memory="128Mi")


def _sentinel() -> Extras:
    return Extras(
        env=[
            namespace_env(),
            {"name": "RESIDE_STATE_DIR", "value": constants.SENTINEL_STATE_DIR},
            secret_env("RESIDE_ENGINE_PASSPHRASE", constants.ENGINE_SECRET, constants.ENGINE_SECRET_KEY),
        ],
        volumes=[{"name": "state", "persistentVolumeClaim": {"claimName": constants.SENTINEL_VOLUME_CLAIM}}],
        mounts=[{"name": "state", "mountPath": constants.SENTINEL_STATE_DIR}],
        pod={"serviceAccountName": constants.SENTINEL_SERVICE_ACCOUNT, "automountServiceAccountToken": True},
        security={"fsGroup": constants.NONROOT_USER},
        memory="128Mi",
    )
