"""Install the objects of an ingress: cert-manager's resources, roles, webhooks, an IngressClass and a ClusterIssuer."""

import base64
from pathlib import Path
from typing import Any

from reside.common.polling import wait_until
from reside.local import api
from reside.local.addons import ApiObject
from reside.local.components import Find
from reside.local.errors import LocalError
from reside.local.ingress import NAMESPACE, WEBHOOK_PORT
from reside.local.layout import CLUSTER_ISSUER, INGRESS_CLASS, Layout
from reside.local.pki import CERT_MANAGER, INGRESS_CA, KUBERNETES_CA, TRAEFIK, certificate_path, key_path
from reside.local.toolchain import RESOURCE_FILES

READY_SECONDS = 120.0
_RBAC = "rbac.authorization.k8s.io"
_ISSUER = f"/apis/cert-manager.io/v1/clusterissuers/{CLUSTER_ISSUER}"
_GATEWAY = "gateway.networking.k8s.io"
_ROUTES = ("httproutes", "grpcroutes")
_READ = ["get", "list", "watch"]


class IssuerNotReadyError(LocalError):
    """Traefik and cert-manager run, but certificates can't be issued."""


def install(layout: Layout, find: Find) -> None:
    """Apply everything that Traefik and cert-manager need before they start; a repetition changes nothing."""
    with api.connect(layout) as client:
        for name in RESOURCE_FILES:
            client.apply_text(_definition(name), find(name).read_text())
        for desired in objects(layout):
            client.apply(desired)
        if not wait_until(lambda: all(_is_served(client, name) for name in RESOURCE_FILES), READY_SECONDS):
            raise IssuerNotReadyError(
                f"The API server did not serve the resources of an ingress in {READY_SECONDS:.0f} s."
            )
        client.apply(gateway_class())


def install_issuer(layout: Layout) -> None:
    """Apply the webhooks and the ClusterIssuer, and wait until it is ready."""
    with api.connect(layout) as client:
        for desired in webhooks(layout):
            client.apply(desired)
        if not wait_until(lambda: _is_issuer_ready(client), READY_SECONDS):
            raise IssuerNotReadyError(
                f"The ClusterIssuer {CLUSTER_ISSUER} was not ready in {READY_SECONDS:.0f} s: see the logs of "
                f"cert-manager and its webhook in {layout.logs}."
            )


def _is_issuer_ready(client: api.Api) -> bool:
    try:
        client.apply(_issuer())
    except api.ApiError:
        return False  # the API server does not use a new webhook or resource at once
    return api.is_ready(client, _ISSUER)


def _definition(file: str) -> str:
    """Return the path of the definition in a file, which is named after group and plural."""
    group, _, plural = Path(file).stem.partition("_")
    return f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{plural}.{group}"


def _is_served(client: api.Api, file: str) -> bool:
    return api.has_condition(client.get(_definition(file)), "Established")


def objects(layout: Layout) -> list[ApiObject]:
    """Return the objects that Traefik and cert-manager need before they start."""
    secrets = f"/api/v1/namespaces/{NAMESPACE}/secrets/{INGRESS_CA}"
    return [
        ApiObject(f"/api/v1/namespaces/{NAMESPACE}", _object("v1", "Namespace", NAMESPACE)),
        ApiObject(secrets, _authority(layout)),
        ApiObject(f"/apis/networking.k8s.io/v1/ingressclasses/{INGRESS_CLASS}", _ingress_class()),
        *_role(TRAEFIK, _traefik_rules()),
        *_role(CERT_MANAGER, _cert_manager_rules()),
    ]


def gateway_class() -> ApiObject:
    """Return the GatewayClass whose Gateways Traefik serves."""
    spec = {"controllerName": "traefik.io/gateway-controller"}
    return ApiObject(
        f"/apis/{_GATEWAY}/v1/gatewayclasses/{INGRESS_CLASS}",
        _object(f"{_GATEWAY}/v1", "GatewayClass", INGRESS_CLASS, spec=spec),
    )


def webhooks(layout: Layout) -> list[ApiObject]:
    """Return the configurations of cert-manager's webhook, which the API server reaches by its address."""
    path = "/apis/admissionregistration.k8s.io/v1"
    validating = _webhook(layout, "validate", ["cert-manager.io", "acme.cert-manager.io"], ["CREATE", "UPDATE"], "*/*")
    mutating = _webhook(layout, "mutate", ["cert-manager.io"], ["CREATE"], "certificaterequests")
    return [
        ApiObject(
            f"{path}/{kind.lower()}s/{CERT_MANAGER}",
            _object("admissionregistration.k8s.io/v1", kind, CERT_MANAGER, webhooks=[webhook]),
        )
        for kind, webhook in (
            ("ValidatingWebhookConfiguration", validating),
            ("MutatingWebhookConfiguration", mutating),
        )
    ]


def _object(api_version: str, kind: str, name: str, **rest: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **rest}


def _authority(layout: Layout) -> dict[str, Any]:
    files = {"tls.crt": certificate_path(layout.pki, INGRESS_CA), "tls.key": key_path(layout.pki, INGRESS_CA)}
    data = {name: _encoded(path) for name, path in files.items()}
    secret = _object("v1", "Secret", INGRESS_CA, type="kubernetes.io/tls", data=data)
    secret["metadata"]["namespace"] = NAMESPACE
    return secret


def _issuer() -> ApiObject:
    spec = {"ca": {"secretName": INGRESS_CA}}
    return ApiObject(_ISSUER, _object("cert-manager.io/v1", "ClusterIssuer", CLUSTER_ISSUER, spec=spec))


def _ingress_class() -> dict[str, Any]:
    spec = {"controller": "traefik.io/ingress-controller"}
    found = _object("networking.k8s.io/v1", "IngressClass", INGRESS_CLASS, spec=spec)
    found["metadata"]["annotations"] = {"ingressclass.kubernetes.io/is-default-class": "true"}
    return found


def _webhook(layout: Layout, path: str, groups: list[str], operations: list[str], resources: str) -> dict[str, Any]:
    rule = {"apiGroups": groups, "apiVersions": ["v1"], "operations": operations, "resources": [resources]}
    return {
        "name": "webhook.cert-manager.io",
        "rules": [rule],
        "admissionReviewVersions": ["v1"],
        "matchPolicy": "Equivalent",
        "timeoutSeconds": 10,
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "clientConfig": {
            "url": f"https://{layout.node_address}:{WEBHOOK_PORT}/{path}",
            "caBundle": _encoded(certificate_path(layout.pki, KUBERNETES_CA)),
        },
    }


def _role(component: str, rules: list[dict[str, Any]]) -> list[ApiObject]:
    """Return a ClusterRole and its binding to the user of a component."""
    name = f"reside:{component}"
    binding = _object(
        f"{_RBAC}/v1",
        "ClusterRoleBinding",
        name,
        roleRef={"apiGroup": _RBAC, "kind": "ClusterRole", "name": name},
        subjects=[{"apiGroup": _RBAC, "kind": "User", "name": name}],
    )
    return [
        ApiObject(f"/apis/{_RBAC}/v1/clusterroles/{name}", _object(f"{_RBAC}/v1", "ClusterRole", name, rules=rules)),
        ApiObject(f"/apis/{_RBAC}/v1/clusterrolebindings/{name}", binding),
    ]


def _rule(group: str, resources: list[str], verbs: list[str]) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": resources, "verbs": verbs}


def _traefik_rules() -> list[dict[str, Any]]:
    return [
        _rule("", ["services", "secrets", "nodes", "namespaces", "configmaps"], _READ),
        _rule("discovery.k8s.io", ["endpointslices"], _READ),
        _rule("networking.k8s.io", ["ingresses", "ingressclasses"], _READ),
        _rule("networking.k8s.io", ["ingresses/status"], ["update"]),
        _rule(_GATEWAY, ["gatewayclasses", "gateways", *_ROUTES, "referencegrants", "backendtlspolicies"], _READ),
        _rule(_GATEWAY, [f"{each}/status" for each in ("gatewayclasses", "gateways", *_ROUTES)], ["update"]),
    ]


def _cert_manager_rules() -> list[dict[str, Any]]:
    write = ["create", "update", "patch", "delete"]
    return [
        _rule("cert-manager.io", ["*"], ["*"]),  # with `approve` for `signers`
        _rule("acme.cert-manager.io", ["*"], ["*"]),
        _rule("", ["secrets"], [*_READ, *write]),
        _rule("", ["events"], ["create", "patch"]),
        _rule("", ["namespaces"], _READ),
        _rule("", ["pods", "services"], [*_READ, "create", "delete"]),
        _rule("networking.k8s.io", ["ingresses"], [*_READ, *write]),
        _rule("networking.k8s.io", ["ingresses/finalizers"], ["update"]),
        _rule("authorization.k8s.io", ["subjectaccessreviews"], ["create"]),
    ]


def _encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
