"""The platform's Kubernetes objects: Jazz, etcd, and the access rights of the Sentinel and the seed. Pure functions.

Phase Storage creates these objects; after the hand-over they are the Sentinel's stack `platform`. Invariants: every
object carries the managed-by label, because the Sentinel refuses to adopt others; images are pinned by digest; RBAC
rules contain no wildcards; the seed has at least the Sentinel's rights, because Kubernetes does not let it bind a Role
with more rights than its own.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from reside.model.constants import (
    ALPHA_NAME,
    CLAIM_SECRET,
    CLAIM_SECRET_KEY,
    ENGINE_SECRET,
    ENGINE_SECRET_KEY,
    ETCD_NAME,
    ETCD_PORT,
    FIELD_MANAGER,
    JAZZ_NAME,
    JAZZ_PORT,
    JOB_LABEL,
    KEEP_ANNOTATION,
    MANAGED_BY_LABEL,
    NONROOT_USER,
    PLATFORM_STACK,
    REGISTRY_SECRET,
    REPLICA_LABEL,
    SECRET_REFERENCES_ANNOTATION,
    SEED_NAME,
    SENTINEL_EVENTS_ROLE,
    SENTINEL_LOGS_ROLE,
    SENTINEL_NAME,
    SENTINEL_ROUTES_ROLE,
    STACK_LABEL,
)
from reside.model.ingress import controller_peer, domain_ingress
from reside.model.kinds import PERMITTED

if TYPE_CHECKING:
    from reside.model.cluster import ClusterSettings
    from reside.seed.settings import BootstrapSettings

Document = dict[str, Any]

SECRETS = (ALPHA_NAME, SENTINEL_NAME, ENGINE_SECRET, CLAIM_SECRET)
"""The Secrets of phase Accounts."""

_VERBS = ["get", "list", "watch", "create", "update", "patch", "delete"]
_RBAC_GROUP = "rbac.authorization.k8s.io"


def metadata(name: str, namespace: str, labels: dict[str, str] | None = None) -> Document:
    """Return the metadata of an object that the Sentinel manages."""
    return {"name": name, "namespace": namespace, "labels": {MANAGED_BY_LABEL: FIELD_MANAGER, **(labels or {})}}


def storage(settings: BootstrapSettings) -> list[Document]:
    """Return the objects of Jazz and etcd: a volume claim, a Service and a StatefulSet for each."""
    return [*_jazz(settings), *_etcd(settings)]


def sentinel_access(namespace: str, *, routes: bool = False) -> list[Document]:
    """Return the Sentinel's permanent ServiceAccount, and its Roles with their RoleBindings.

    A right that an earlier release did not have is in a Role of its own: in a running cluster, the Sentinel reverts the
    change of a Role of its stack, and Kubernetes does not let it extend its own rights afterwards. The annotation keeps
    it from pruning a Role that it does not know yet.

    Args:
        namespace: the namespace of the cluster.
        routes: whether the Sentinel manages HTTPRoutes. Who creates the Role must have this right, too, and many who
            may do everything else in their namespace lack it.
    """
    later = [
        *_grant(SENTINEL_EVENTS_ROLE, namespace, event_rules(), SENTINEL_NAME),
        *_grant(SENTINEL_LOGS_ROLE, namespace, log_rules(), SENTINEL_NAME),
        *(_grant(SENTINEL_ROUTES_ROLE, namespace, route_rules(), SENTINEL_NAME) if routes else ()),
    ]
    for each in later:
        each["metadata"]["annotations"] = {KEEP_ANNOTATION: "true"}
    return [*_access(SENTINEL_NAME, namespace, sentinel_rules()), *later]


def seed_access(namespace: str, *, routes: bool = False) -> list[Document]:
    """Return the seed's ServiceAccount, Role and RoleBinding: the Sentinel's rights while the seed's Job exists."""
    rules = [*sentinel_rules(), *event_rules(), *log_rules(), *(route_rules() if routes else ())]
    return _access(SEED_NAME, namespace, rules)


def secret(name: str, namespace: str, values: dict[str, str] | None = None) -> Document:
    """Return a Secret; None for `values` returns it without data."""
    secret_object: Document = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata(name, namespace),
        "type": "Opaque",
    }
    return secret_object if values is None else {**secret_object, "stringData": values}


def claim_secret(namespace: str, code: str) -> Document:
    """Return the Secret with the one-time code of the super admin claim; the Sentinel does not manage it."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": CLAIM_SECRET, "namespace": namespace, "labels": {STACK_LABEL: PLATFORM_STACK}},
        "type": "Opaque",
        "stringData": {CLAIM_SECRET_KEY: code},
    }


def referring_secret(name: str, namespace: str, references: dict[str, str]) -> Document:
    """Return a Secret whose values the Sentinel resolves: key → CoId of a map with the member `value`."""
    secret_object = secret(name, namespace)
    secret_object["metadata"]["annotations"] = {SECRET_REFERENCES_ANNOTATION: json.dumps(references, sort_keys=True)}
    return secret_object


def platform_stack(settings: BootstrapSettings, engine_secret: str) -> list[Document]:
    """Return the objects of the Sentinel's stack `platform`.

    Args:
        settings: images, storage, namespace.
        engine_secret: CoId of the map with the engine's passphrase.
    """
    return [
        *storage(settings),
        sentinel_volume(settings),
        *sentinel_access(settings.namespace, routes=settings.gateway is not None),
        *network_policies(settings),
        *ingresses(settings),
        referring_secret(ENGINE_SECRET, settings.namespace, {ENGINE_SECRET_KEY: engine_secret}),
    ]


def network_policies(settings: BootstrapSettings) -> list[Document]:
    """Return the NetworkPolicies of Jazz and etcd: replicas and the seed reach them. None, if the cluster has none.

    With a domain, the ingress controller reaches Jazz, and never etcd.

    The bootstrap reaches both before it creates the policies, and from outside through the Kubernetes API's
    port-forward, which comes from their Kubernetes node; no policy applies to that.
    """
    if settings.network_policies == "off":
        return []
    replicas = {"matchExpressions": [{"key": REPLICA_LABEL, "operator": "Exists"}]}
    seed = {"matchLabels": {JOB_LABEL: SEED_NAME}}
    outside = {JAZZ_NAME: [controller_peer(settings)]} if settings.domain else {}
    return [
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": metadata(name, settings.namespace),
            "spec": {
                "podSelector": {"matchLabels": {"app.kubernetes.io/name": name}},
                "policyTypes": ["Ingress"],
                "ingress": [
                    {
                        "from": [{"podSelector": replicas}, {"podSelector": seed}, *outside.get(name, [])],
                        "ports": [{"port": port, "protocol": "TCP"}],
                    }
                ],
            },
        }
        for name, port in ((JAZZ_NAME, JAZZ_PORT), (ETCD_NAME, ETCD_PORT))
    ]


def ingresses(settings: ClusterSettings) -> list[Document]:
    """Return the Ingress or HTTPRoute of Jazz: the WebSocket at the domain's path `/` and nothing else; or none."""
    if not settings.domain:
        return []
    backend = {"service": {"name": JAZZ_NAME, "port": {"number": JAZZ_PORT}}}
    path = {"path": "/", "pathType": "Exact", "backend": backend}
    return [domain_ingress(metadata(JAZZ_NAME, settings.namespace), settings, path, issues=True)]


def pod_security() -> Document:
    """Return the security context of the platform's pods: not root, volumes owned by the pod's group."""
    return {
        "fsGroup": NONROOT_USER,
        "runAsGroup": NONROOT_USER,
        "runAsNonRoot": True,
        "runAsUser": NONROOT_USER,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def pull_secrets(settings: BootstrapSettings) -> Document:
    """Return the members of a pod's spec with which the kubelet pulls its images."""
    return {"imagePullSecrets": [{"name": REGISTRY_SECRET}]} if settings.registry_credentials else {}


def sentinel_volume(settings: BootstrapSettings) -> Document:
    """Return the Sentinel's volume claim, for the engine's state and the last validated stacks."""
    return _volume_claim(SENTINEL_NAME, settings)


def sentinel_rules() -> list[Document]:
    """Return the Sentinel's RBAC rules: manage exactly the kinds that a stack may contain, and read pods and events."""
    groups: dict[str, list[str]] = {}
    for kind in PERMITTED:
        group = kind.api_version.rpartition("/")[0]
        groups.setdefault(group, []).append(kind.plural)
    rules: list[Document] = [
        {"apiGroups": [group], "resources": sorted(resources), "verbs": _VERBS}
        for group, resources in sorted(groups.items())
    ]
    return [*rules, {"apiGroups": [""], "resources": ["events", "pods"], "verbs": ["get", "list", "watch"]}]


def event_rules() -> list[Document]:
    """Return the RBAC rules to write events about repairs."""
    return [{"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]}]


def log_rules() -> list[Document]:
    """Return the RBAC rules to read the logs of pods, for operators who may."""
    return [{"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]}]


def route_rules() -> list[Document]:
    """Return the RBAC rules to manage HTTPRoutes."""
    return [{"apiGroups": ["gateway.networking.k8s.io"], "resources": ["httproutes"], "verbs": _VERBS}]


def _access(name: str, namespace: str, rules: list[Document]) -> list[Document]:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata(name, namespace)}
    return [account, *_grant(name, namespace, rules, name)]


def _grant(name: str, namespace: str, rules: list[Document], account: str) -> list[Document]:
    """Return a Role, and the RoleBinding that grants it to a ServiceAccount."""
    return [
        {
            "apiVersion": f"{_RBAC_GROUP}/v1",
            "kind": "Role",
            "metadata": metadata(name, namespace),
            "rules": rules,
        },
        {
            "apiVersion": f"{_RBAC_GROUP}/v1",
            "kind": "RoleBinding",
            "metadata": metadata(name, namespace),
            "roleRef": {"apiGroup": _RBAC_GROUP, "kind": "Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
        },
    ]


def _jazz(settings: BootstrapSettings) -> list[Document]:
    folder = "/data"
    container = {
        "env": [
            {"name": "HOST", "value": "0.0.0.0"},  # noqa: S104 - a pod serves its Service
            {"name": "PORT", "value": str(JAZZ_PORT)},
            {"name": "DB", "value": f"{folder}/jazz.db"},
            {"name": "MODE", "value": settings.jazz_mode},
        ],
        "image": settings.located(settings.images.jazz),
        **_probes("/healthz", "/healthz", JAZZ_PORT),
        "resources": _resources("100m", "128Mi", "1Gi"),
    }
    return _stateful(JAZZ_NAME, JAZZ_PORT, folder, container, settings)


def _etcd(settings: BootstrapSettings) -> list[Document]:
    folder = "/var/lib/etcd"
    container = {
        "args": [
            f"--data-dir={folder}/data",
            f"--listen-client-urls=http://0.0.0.0:{ETCD_PORT}",
            f"--advertise-client-urls=http://{ETCD_NAME}:{ETCD_PORT}",
            "--listen-peer-urls=http://127.0.0.1:2380",
            "--auto-compaction-mode=periodic",
            "--auto-compaction-retention=1h",
            "--quota-backend-bytes=268435456",
            "--bcrypt-cost=4",  # the passwords are random; a login at the default cost takes a tenth of a second
        ],
        "image": settings.located(settings.images.etcd),
        **_probes("/livez", "/readyz", ETCD_PORT),
        "resources": _resources("100m", "64Mi", "512Mi"),
    }
    return _stateful(ETCD_NAME, ETCD_PORT, folder, container, settings)


def _stateful(name: str, port: int, folder: str, container: Document, settings: BootstrapSettings) -> list[Document]:
    selector = {"app.kubernetes.io/name": name}
    labels = metadata(name, settings.namespace, selector)
    pod: Document = {
        "automountServiceAccountToken": False,
        "containers": [
            {
                "name": name,
                "ports": [{"containerPort": port, "name": "client", "protocol": "TCP"}],
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "capabilities": {"drop": ["ALL"]},
                    "readOnlyRootFilesystem": True,
                },
                "volumeMounts": [{"mountPath": folder, "name": "data"}, {"mountPath": "/tmp", "name": "tmp"}],  # noqa: S108
                **container,
            }
        ],
        "enableServiceLinks": False,
        "securityContext": pod_security(),
        "terminationGracePeriodSeconds": 30,
        "volumes": [
            {"name": "data", "persistentVolumeClaim": {"claimName": name}},
            {"name": "tmp", "emptyDir": {}},
        ],
    }
    pod |= pull_secrets(settings)
    return [
        _volume_claim(name, settings),
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": labels,
            "spec": {
                "ports": [{"name": "client", "port": port, "protocol": "TCP", "targetPort": "client"}],
                "selector": selector,
            },
        },
        {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": labels,
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": selector},
                "serviceName": name,
                "template": {"metadata": {"labels": selector}, "spec": pod},
            },
        },
    ]


def _volume_claim(name: str, settings: BootstrapSettings) -> Document:
    spec: Document = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": settings.storage_size}},
    }
    if settings.storage_class is not None:
        spec["storageClassName"] = settings.storage_class
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata(name, settings.namespace),
        "spec": spec,
    }


def _probes(live: str, ready: str, port: int) -> Document:
    """Return the probes of a container: every second until it has started, then every 5 s."""
    return {
        "startupProbe": _http_probe(ready, port, failures=120, period=1),
        "livenessProbe": _http_probe(live, port, failures=6),
        "readinessProbe": _http_probe(ready, port, failures=2),
    }


def _http_probe(path: str, port: int, failures: int, period: int = 5) -> Document:
    return {
        "failureThreshold": failures,
        "httpGet": {"path": path, "port": port},
        "periodSeconds": period,
        "timeoutSeconds": 3,
    }


def _resources(cpu: str, memory: str, limit: str) -> Document:
    return {"limits": {"memory": limit}, "requests": {"cpu": cpu, "memory": memory}}
