"""Render the Deployment or Job of one version of a replica (docs/model.md, section 6).

With scalable replicas a new pod is ready before the old one stops. A pod of them that stops leaves its Service first:
it is marked as terminating, the preStop sleep gives all nodes time to notice, and then the process gets SIGTERM. So no
call fails while versions change. A replica that is not scalable has no other pod that could take the calls, and its
next version waits for the end of the pod, so it does not sleep.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from reside.alpha.stacks import system
from reside.alpha.stacks.pods import pods_of
from reside.model import constants, identities
from reside.model.endpoints import LIVENESS_PATH, READINESS_PATH
from reside.model.names import workload_name

if TYPE_CHECKING:
    from reside.model.cluster import ClusterSettings
    from reside.model.entities import Replica, ReplicaVersion
    from reside.model.stacks import K8sObject

CPU_REQUEST: Final = "20m"
MEMORY_REQUEST: Final = "64Mi"
DRAIN_SECONDS: Final = 3
GRACE_SECONDS: Final = 30
JOB_RETRIES: Final = 2


@dataclass(frozen=True)
class Workload:
    """One version to render: `runs` is whether it has pods or is scaled to 0."""

    replica: Replica
    version: ReplicaVersion
    runs: bool

    @property
    def name(self) -> str:
        """Name of the Deployment or Job."""
        return workload_name(self.replica.name, self.version.id)

    @property
    def labels(self) -> dict[str, str]:
        """Labels of its pods."""
        return {constants.REPLICA_LABEL: self.replica.name, constants.VERSION_LABEL: str(self.version.id)}


def stack_labels(stack: str) -> dict[str, str]:
    """Return the labels of every object of a stack."""
    return {
        constants.MANAGED_BY_LABEL: constants.FIELD_MANAGER,
        constants.REPLICA_LABEL: stack,
        constants.STACK_LABEL: stack,
    }


def metadata(name: str, stack: str, cluster: ClusterSettings, **labels: str) -> dict[str, Any]:
    """Return `metadata` of an object of a stack."""
    return {"name": name, "namespace": cluster.namespace, "labels": stack_labels(stack) | labels}


def render_workload(workload: Workload, cluster: ClusterSettings) -> K8sObject:
    """Render the Deployment of a long-running version, or the Job of a oneshot one."""
    oneshot = workload.replica.info.kind == "oneshot"
    meta = metadata(workload.name, workload.replica.name, cluster)
    meta["labels"][constants.VERSION_LABEL] = str(workload.version.id)
    template = {
        "metadata": {"labels": stack_labels(workload.replica.name) | workload.labels},
        "spec": _pod(workload, cluster, oneshot=oneshot),
    }
    if oneshot:
        spec: dict[str, Any] = {"backoffLimit": JOB_RETRIES, "suspend": not workload.runs, "template": template}
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec}
    spec = {
        "replicas": _pods(workload),
        "revisionHistoryLimit": 1,
        "strategy": _strategy(scalable=workload.replica.info.scalable),
        "selector": {"matchLabels": workload.labels},
        "template": template,
    }
    health = workload.version.health
    if health.min_ready_s:
        spec |= {"minReadySeconds": health.min_ready_s, "progressDeadlineSeconds": health.deadline_s}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}


def _pods(workload: Workload) -> int:
    """Return the number of pods of a Deployment."""
    return pods_of(workload.replica, workload.version) if workload.runs else 0


def suspended(job: K8sObject, *, suspend: bool) -> K8sObject:
    """Return the Job with this `suspend`, the only member of a Job that can be changed."""
    return job | {"spec": job["spec"] | {"suspend": suspend}}


def _strategy(*, scalable: bool) -> dict[str, Any]:
    if not scalable:
        return {"type": "Recreate"}
    return {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}


def _pod(workload: Workload, cluster: ClusterSettings, *, oneshot: bool) -> dict[str, Any]:
    replica = workload.replica
    more = system.extras(replica.identity, cluster)
    group = replica.management.placement_group or cluster.default_placement_group
    pod: dict[str, Any] = {
        "enableServiceLinks": False,
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}} | more.security,
        "containers": [_container(workload, cluster, more, oneshot=oneshot)],
        "volumes": [{"name": "tmp", "emptyDir": {}}, *more.volumes],
        "restartPolicy": "Never" if oneshot else "Always",
    }
    if cluster.registry_credentials:
        pod["imagePullSecrets"] = [{"name": constants.REGISTRY_SECRET}]
    if group:
        pod["nodeSelector"] = {constants.PLACEMENT_GROUP_LABEL: group}
    return pod | more.pod


def _container(workload: Workload, cluster: ClusterSettings, more: system.Extras, *, oneshot: bool) -> dict[str, Any]:
    container: dict[str, Any] = {
        "name": constants.REPLICA_CONTAINER,
        "image": f"{cluster.located(workload.replica.identity)}@{workload.version.digest}",
        "imagePullPolicy": "IfNotPresent",
        "env": [*_environment(workload.replica, cluster), *more.env],
        "resources": {"requests": {"cpu": CPU_REQUEST, "memory": more.memory or MEMORY_REQUEST}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}, *more.mounts],  # noqa: S108 - a volume of the pod
    }
    if more.env_from:
        container["envFrom"] = more.env_from
    if oneshot:
        return container
    return container | _serving(workload.version, drains=workload.replica.info.scalable)


def _serving(version: ReplicaVersion, *, drains: bool) -> dict[str, Any]:
    """Return what a container that may serve has: its port, the delay before its stop, and probes."""
    served: dict[str, Any] = {"ports": [{"name": "http", "containerPort": constants.LISTEN_PORT, "protocol": "TCP"}]}
    if drains:
        served["lifecycle"] = {"preStop": {"sleep": {"seconds": DRAIN_SECONDS}}}
    if version.probes == "none":
        return served
    return served | {
        "startupProbe": _probe(LIVENESS_PATH, period=1, failures=120),
        "livenessProbe": _probe(LIVENESS_PATH, period=10, failures=6),
        "readinessProbe": _probe(READINESS_PATH, period=1, failures=4),
    }


def _probe(path: str, *, period: int, failures: int) -> dict[str, Any]:
    return {
        "httpGet": {"path": path, "port": "http"},
        "periodSeconds": period,
        "timeoutSeconds": 5,
        "failureThreshold": failures,
    }


def _environment(replica: Replica, cluster: ClusterSettings) -> list[dict[str, Any]]:
    """Return the environment of a replica; the kubelet reads the credentials from the Secret."""
    external, traces = cluster.external_url, cluster.traces_endpoint
    plain = {
        "RESIDE_REPLICA_NAME": replica.name,
        "RESIDE_CONTROL_BLOCK_ID": replica.control_block,
        "RESIDE_SYNC_SERVER_URL": constants.JAZZ_URL,
        "RESIDE_ETCD_HOSTS": constants.ETCD_URL,
        "RESIDE_ACCESS_CONTEXT": "internal",
        "RESIDE_LISTEN_PORT": str(constants.LISTEN_PORT),
    }
    plain |= {"RESIDE_EXTERNAL_ENDPOINT": external} if external else {}
    plain |= {identities.VARIABLE: identities.repository()} if identities.repository() != constants.OWN else {}
    plain |= {"OTEL_EXPORTER_OTLP_ENDPOINT": traces} if traces else {}
    return [
        system.secret_env("RESIDE_ACCOUNT_ID", replica.name, constants.ACCOUNT_ID_KEY),
        system.secret_env("RESIDE_AGENT_SECRET", replica.name, constants.AGENT_SECRET_KEY),
        *({"name": name, "value": value} for name, value in plain.items()),
    ]
