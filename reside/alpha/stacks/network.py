"""Render the NetworkPolicies of a replica (docs/model.md, section 6). Pure.

NetworkPolicies add up. So a replica's own policy lets nobody in whom the replica does not know by itself, and each
replica that requires others declares a second policy, which lets it reach the pods of these. Its stack follows from its
own requirements alone.

A setting decides (`ClusterSettings.network_policies`): `ingress` limits who reaches pods, `full` also what pods reach.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from reside.alpha.stacks.workload import metadata
from reside.model import constants
from reside.model.identities import system_id
from reside.model.ingress import controller_peer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reside.model.cluster import ClusterSettings
    from reside.model.entities import Replica, ReplicaVersion
    from reside.model.stacks import K8sObject

_SYSTEM: Final = (constants.ALPHA_ID, constants.SENTINEL_ID)
"""They reach registries and the Kubernetes API, whose addresses are not known here."""
_DNS_PORT: Final = 53
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
CALLS: Final = ".calls"
"""End of the name of the second policy. No name of an instance contains a dot."""


def network_policies(
    replica: Replica, versions: Iterable[ReplicaVersion], cluster: ClusterSettings, *, serves: bool
) -> list[K8sObject]:
    """Return the NetworkPolicies of a replica; none if the cluster has none.

    Args:
        replica: the replica.
        versions: its versions with a workload.
        cluster: the settings of the cluster.
        serves: whether the replica has a Service.
    """
    if cluster.network_policies == "off":
        return []
    requirements = [requirement for version in versions for requirement in version.requirements.values()]
    required = sorted({choice.name for requirement in requirements for choice in requirement.replicas})
    own: dict[str, Any] = {
        "podSelector": {"matchLabels": {constants.REPLICA_LABEL: replica.name}},
        "policyTypes": ["Ingress"],
    }
    if callers := _callers(replica, cluster, serves=serves):
        own["ingress"] = callers  # the API server drops an empty list
    if cluster.network_policies == "full" and system_id(replica.identity) not in _SYSTEM:
        own |= {"policyTypes": ["Ingress", "Egress"], "egress": _callees(required, cluster)}
    policies = [_policy(replica.name, replica, cluster, own)]
    if required:
        calls = {
            "podSelector": _replicas(required),
            "policyTypes": ["Ingress"],
            "ingress": [_rule("from", [{"podSelector": _replicas([replica.name])}], constants.LISTEN_PORT)],
        }
        policies.append(_policy(f"{replica.name}{CALLS}", replica, cluster, calls))
    return policies


def _callers(replica: Replica, cluster: ClusterSettings, *, serves: bool) -> list[dict[str, Any]]:
    """Return who reaches a replica without requiring it: the ingress controller; Alpha, all replicas and the seed."""
    rules = []
    if system_id(replica.identity) == constants.ALPHA_ID:
        every = {"matchExpressions": [{"key": constants.REPLICA_LABEL, "operator": "Exists"}]}
        seed = {"matchLabels": {constants.JOB_LABEL: constants.SEED_NAME}}
        rules.append(_rule("from", [{"podSelector": every}, {"podSelector": seed}], constants.LISTEN_PORT))
    if serves and cluster.domain:
        rules.append(_rule("from", [controller_peer(cluster)], constants.LISTEN_PORT))
    return rules


def _callees(required: list[str], cluster: ClusterSettings) -> list[dict[str, Any]]:
    """Return what a replica reaches: names, Jazz, etcd, Alpha, what it requires, and where traces go."""
    rules = [
        {"ports": [{"port": _DNS_PORT, "protocol": protocol} for protocol in ("UDP", "TCP")]},
        _rule("to", [_named(constants.JAZZ_NAME)], constants.JAZZ_PORT),
        _rule("to", [_named(constants.ETCD_NAME)], constants.ETCD_PORT),
        _rule("to", [{"podSelector": _replicas(sorted({constants.ALPHA_NAME, *required}))}], constants.LISTEN_PORT),
    ]
    if cluster.traces_endpoint:
        traces = urlsplit(cluster.traces_endpoint)
        rules.append({"ports": [{"port": traces.port or _DEFAULT_PORTS[traces.scheme], "protocol": "TCP"}]})
    return rules


def _rule(direction: str, peers: list[dict[str, Any]], port: int) -> dict[str, Any]:
    return {direction: peers, "ports": [{"port": port, "protocol": "TCP"}]}


def _named(name: str) -> dict[str, Any]:
    """Return the peer that is the pods of Jazz or etcd."""
    return {"podSelector": {"matchLabels": {"app.kubernetes.io/name": name}}}


def _replicas(names: list[str]) -> dict[str, Any]:
    """Return the selector of the pods of replicas."""
    return {"matchExpressions": [{"key": constants.REPLICA_LABEL, "operator": "In", "values": names}]}


def _policy(name: str, replica: Replica, cluster: ClusterSettings, spec: dict[str, Any]) -> K8sObject:
    meta = metadata(name, replica.name, cluster)
    return {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": meta, "spec": spec}
