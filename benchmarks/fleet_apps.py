"""The applications of the fleet benchmark: five objects each, the same for the Sentinel and for its peers."""

from __future__ import annotations

import json
from typing import Any

from reside.model.constants import FIELD_MANAGER, MANAGED_BY_LABEL, SECRET_REFERENCES_ANNOTATION, STACK_LABEL

OBJECTS = 5
"""Objects of an application: ServiceAccount, Secret, Service, NetworkPolicy, and a Deployment with 0 replicas."""
REPOSITORY = "registry.example/fleet/app"


def name_of(number: int) -> str:
    """Return the name of an application, which is that of its stack and of its objects, too."""
    return f"app-{number:04}"


def application(number: int, revision: int, *, values: str | None = None) -> list[dict[str, Any]]:
    """Return the objects of an application.

    Args:
        number: which application.
        revision: the digest of the image is made of it.
        values: id of a map in Jazz with the secret value; None: the Secret has plain values, as peers need it.
    """
    name = name_of(number)
    labels = {MANAGED_BY_LABEL: FIELD_MANAGER, STACK_LABEL: name} if values else {"app.kubernetes.io/name": name}
    selector = {"app": name}

    def obj(api: str, kind: str, **members: Any) -> dict[str, Any]:
        return {"apiVersion": api, "kind": kind, "metadata": {"name": name, "labels": dict(labels)}, **members}

    secret = obj("v1", "Secret", type="Opaque")
    if values:
        secret["metadata"]["annotations"] = {SECRET_REFERENCES_ANNOTATION: json.dumps({"password": values})}
    else:
        secret["stringData"] = {"password": f"not-a-real-password-{name}"}
    ports = [{"name": "http", "port": 80, "protocol": "TCP", "targetPort": "http"}]
    return [
        obj("v1", "ServiceAccount", automountServiceAccountToken=False),
        secret,
        obj("v1", "Service", spec={"type": "ClusterIP", "selector": selector, "ports": ports}),
        obj(
            "networking.k8s.io/v1",
            "NetworkPolicy",
            spec={
                "podSelector": {"matchLabels": selector},
                "policyTypes": ["Ingress"],
                "ingress": [
                    {
                        "from": [{"podSelector": {"matchLabels": {"access": name}}}],
                        "ports": [{"protocol": "TCP", "port": 8080}],
                    }
                ],
            },
        ),
        obj("apps/v1", "Deployment", spec=_deployment(name, revision, labels, selector)),
    ]


def _deployment(name: str, revision: int, labels: dict[str, str], selector: dict[str, str]) -> dict[str, Any]:
    probe = {"httpGet": {"path": "/healthz", "port": "http"}}
    container = {
        "name": "app",
        "image": f"{REPOSITORY}@sha256:{revision:064x}",
        "args": ["serve", "--port=8080"],
        "env": [{"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": name, "key": "password"}}}],
        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}},
        "livenessProbe": probe,
        "readinessProbe": probe,
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "runAsUser": 1000,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
    return {
        "replicas": 0,
        "revisionHistoryLimit": 2,
        "selector": {"matchLabels": selector},
        "template": {
            "metadata": {"labels": {**labels, **selector}},
            "spec": {"serviceAccountName": name, "automountServiceAccountToken": False, "containers": [container]},
        },
    }
