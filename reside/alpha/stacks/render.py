"""Render the desired stack of a replica from its versions, their statuses and the settings of the cluster. Pure.

The desired stack is the only thing that Alpha declares about a replica. Rolling back is rendering with another current
version. The result depends on stored data only, so it is the same after Alpha is restarted.

A version keeps the pod template with which it was rendered first, so that a newer Alpha restarts no pod
(`reside.alpha.stacks.templates`). The template of a Job can't be changed, and a completed Job must not run again.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from reside.alpha.stacks import system
from reside.alpha.stacks.network import network_policies
from reside.alpha.stacks.rollout import rollout
from reside.alpha.stacks.templates import with_kept_template
from reside.alpha.stacks.workload import Workload, metadata, render_workload, suspended
from reside.model import constants
from reside.model.endpoints import replica_path
from reside.model.ingress import domain_ingress
from reside.model.stacks import DesiredStack

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from reside.model.cluster import ClusterSettings
    from reside.model.entities import Replica, ReplicaVersion
    from reside.model.stacks import K8sObject


def render(
    replica: Replica,
    cluster: ClusterSettings,
    *,
    owner: str,
    serving: Collection[str] = (),
    rendered: Mapping[str, K8sObject] | None = None,
) -> DesiredStack:
    """Return the desired stack of a replica.

    Args:
        replica: the replica with its versions and their current statuses.
        cluster: the settings of the cluster.
        owner: the account that declares the stack, which is Alpha's.
        serving: identities of the contracts that have at least one method.
        rendered: the objects of the last desired stack of this replica, by `Kind/name`.

    Returns:
        the stack. It has no objects if the replica has no current version, or is the seed.
    """
    plan = rollout(replica)
    if not plan or not system.is_rendered(replica.identity):
        return DesiredStack(replica.name, owner, ())
    versions = [version for version in replica.versions if version.id in plan]
    objects = [_secret(replica, cluster)]
    for version in sorted(versions, key=lambda v: v.id):
        workload = _workload(Workload(replica, version, plan[version.id]), cluster, rendered or {})
        objects += [workload] if workload else []
    serves = _serves(versions, serving)
    if serves:
        objects.append(_service(replica, cluster))
        objects += [replica_ingress(replica.name, cluster)] if cluster.domain else []
    objects += network_policies(replica, versions, cluster, serves=serves)
    return DesiredStack(replica.name, owner, tuple(objects))


def _workload(workload: Workload, cluster: ClusterSettings, rendered: Mapping[str, K8sObject]) -> K8sObject | None:
    if workload.replica.info.kind == "oneshot":
        before = rendered.get(f"Job/{workload.name}")
        if workload.version.status in ("completed", "error"):
            return before
        if before is not None:
            return suspended(before, suspend=not workload.runs)
    fresh = render_workload(workload, cluster)
    before = rendered.get(f"Deployment/{workload.name}")
    return fresh if before is None else with_kept_template(fresh, before, workload.replica.template)


def _serves(versions: Collection[ReplicaVersion], serving: Collection[str]) -> bool:
    """Return whether a version with a workload implements a contract that has a method."""
    return any(identity in serving for version in versions for identity in version.implementations.values())


def _secret(replica: Replica, cluster: ClusterSettings) -> K8sObject:
    """Render the replica's credentials: the account id in plain text, the agent secret as a secret reference."""
    meta = metadata(replica.name, replica.name, cluster)
    if replica.agent_secret:
        references = json.dumps({constants.AGENT_SECRET_KEY: replica.agent_secret})
        meta["annotations"] = {constants.SECRET_REFERENCES_ANNOTATION: references}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": meta,
        "type": "Opaque",
        "stringData": {constants.ACCOUNT_ID_KEY: replica.account},
    }


def _service(replica: Replica, cluster: ClusterSettings) -> K8sObject:
    port = {"name": "http", "port": constants.SERVICE_PORT, "targetPort": constants.LISTEN_PORT, "protocol": "TCP"}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(replica.name, replica.name, cluster),
        "spec": {"type": "ClusterIP", "selector": {constants.REPLICA_LABEL: replica.name}, "ports": [port]},
    }


def replica_ingress(name: str, cluster: ClusterSettings) -> K8sObject:
    """Render the Ingress of a replica: its path prefix on the domain."""
    backend = {"service": {"name": name, "port": {"number": constants.SERVICE_PORT}}}
    path = {"path": replica_path(name), "pathType": "Prefix", "backend": backend}
    return domain_ingress(metadata(name, name, cluster), cluster, path)
