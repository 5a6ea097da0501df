"""Each hostile object of an account that may declare its kind is refused by its rule; what a stack needs is not.

The table is what an attacker tries with a permission to declare objects: read the Secrets of others, act as another
ServiceAccount, reach nodes and the network outside, answer for other replicas, take the platform's place.
"""

from __future__ import annotations

from typing import Any, Final

import pytest

from reside.policy.rules import RULES, Context, check

STACK: Final = Context("reside", stack="mine")
IMAGE: Final = "registry.reside.internal/demo@sha256:" + "a" * 64
LABELS: Final = {"app.kubernetes.io/managed-by": "kubernetes-sentinel", "reside.io/stack": "mine"}


def manifest(kind: str, name: str = "web", **members: Any) -> dict[str, Any]:
    return {"kind": kind, "metadata": {"name": name, "labels": dict(LABELS)}, **members}


def pods(pod: dict[str, Any], kind: str = "Deployment", **template: Any) -> dict[str, Any]:
    containers = [{"name": "main", "image": IMAGE}]
    return manifest(kind, spec={"template": {"spec": {"containers": containers, **pod}, **template}})


def container(**members: Any) -> dict[str, Any]:
    return pods({"containers": [{"name": "main", "image": IMAGE, **members}]})


def env(**source: Any) -> dict[str, Any]:
    return container(env=[{"name": "A", "valueFrom": source}])


def volume(**source: Any) -> dict[str, Any]:
    return pods({"volumes": [{"name": "v", **source}]})


def role(*rules: dict[str, Any]) -> dict[str, Any]:
    return manifest("Role", rules=list(rules))


def allow(resource: str, *verbs: str, group: str = "", **more: Any) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": [resource], "verbs": list(verbs), **more}


def binding(kind: str, name: str) -> dict[str, Any]:
    subjects = [{"kind": "ServiceAccount", "name": "web"}]
    return manifest("RoleBinding", roleRef={"kind": kind, "name": name}, subjects=subjects)


def service(**spec: Any) -> dict[str, Any]:
    return manifest("Service", spec={"selector": {"app": "web"}, **spec})


def ingress(path: Any = "/replicas/mine/", backend: str = "web", kind: str = "Prefix", **spec: Any) -> dict[str, Any]:
    entry = {"path": path, "pathType": kind, "backend": {"service": {"name": backend, "port": {"number": 80}}}}
    return manifest("Ingress", spec={"rules": [{"host": "example.org", "http": {"paths": [entry]}}], **spec})


def route(
    value: Any = "/replicas/mine/", backend: str = "web", kind: str = "PathPrefix", **more: Any
) -> dict[str, Any]:
    """Return an HTTPRoute; `more` are members of its only rule, or, with a capital letter, of its spec."""
    rule = {
        "matches": [{"path": {"type": kind, "value": value}}],
        "backendRefs": [{"name": backend, "port": 80}],
        **{name: found for name, found in more.items() if name[0].islower()},
    }
    spec = {name[0].lower() + name[1:]: found for name, found in more.items() if name[0].isupper()}
    parents = [{"namespace": "edge", "name": "public"}]
    return manifest("HTTPRoute", spec={"parentRefs": parents, "hostnames": ["example.org"], "rules": [rule], **spec})


def claim(**spec: Any) -> dict[str, Any]:
    return manifest("PersistentVolumeClaim", spec=spec)


def labelled(obj: dict[str, Any], **labels: str) -> dict[str, Any]:
    names = {name.replace("__", "/").replace("_", "."): value for name, value in labels.items()}
    return obj | {"metadata": obj["metadata"] | {"labels": LABELS | names}}


def annotated(obj: dict[str, Any], **annotations: str) -> dict[str, Any]:
    names = {name.replace("__", "/").replace("_", "."): value for name, value in annotations.items()}
    return obj | {"metadata": obj["metadata"] | {"annotations": names}}


def selecting(**selector: Any) -> dict[str, Any]:
    return manifest("NetworkPolicy", spec={"podSelector": selector, "policyTypes": ["Ingress"]})


HOSTILE: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    # Secrets of others
    "an environment variable from Alpha's Secret": (
        "own-references",
        env(secretKeyRef={"name": "alpha", "key": "agentSecret"}),
    ),
    "an environment variable from another ConfigMap": (
        "own-references",
        env(configMapKeyRef={"name": "theirs", "key": "x"}),
    ),
    "a whole Secret as environment": ("own-references", container(envFrom=[{"secretRef": {"name": "alpha"}}])),
    "a whole ConfigMap as environment": ("own-references", container(envFrom=[{"configMapRef": {"name": "theirs"}}])),
    "a Secret in an init container": (
        "own-references",
        pods({"initContainers": [{"name": "i", "image": IMAGE, "envFrom": [{"secretRef": {"name": "alpha"}}]}]}),
    ),
    "a Secret as a volume": ("own-references", volume(secret={"secretName": "kubernetes-sentinel-engine"})),
    "a ConfigMap as a volume": ("own-references", volume(configMap={"name": "theirs"})),
    "a Secret in a projected volume": (
        "own-references",
        volume(projected={"sources": [{"serviceAccountToken": {"path": "t"}}, {"secret": {"name": "alpha"}}]}),
    ),
    "a volume of a Secret without a name": ("own-references", volume(secret={})),
    "credentials to pull images": ("own-references", pods({"imagePullSecrets": [{"name": "alpha"}]})),
    "a Secret in a Job": (
        "own-references",
        pods({"volumes": [{"name": "v", "secret": {"secretName": "alpha"}}]}, kind="Job"),
    ),
    "a Secret in a StatefulSet": (
        "own-references",
        pods({"volumes": [{"name": "v", "secret": {"secretName": "alpha"}}]}, kind="StatefulSet"),
    ),
    # Accounts and rights of others
    "the Sentinel's ServiceAccount": ("own-references", pods({"serviceAccountName": "kubernetes-sentinel"})),
    "the Sentinel's ServiceAccount by its old member": (
        "own-references",
        pods({"serviceAccount": "kubernetes-sentinel"}),
    ),
    "the Sentinel's Role": ("own-roles", binding("Role", "kubernetes-sentinel")),
    "a cluster role": ("local-role-bindings", binding("ClusterRole", "cluster-admin")),
    "a Role on every Secret": ("narrow-roles", role(allow("secrets", "get"))),
    "a Role on every Secret with an empty list of names": (
        "narrow-roles",
        role(allow("secrets", "get", resourceNames=[])),
    ),
    "a Role on Alpha's Secret": ("narrow-roles", role(allow("secrets", "get", resourceNames=["alpha"]))),
    "a Role on a Secret of its own and Alpha's": (
        "narrow-roles",
        role(allow("secrets", "get", resourceNames=["web", "alpha"])),
    ),
    "a Role that lists Secrets among others": (
        "narrow-roles",
        role({"apiGroups": [""], "resources": ["pods", "secrets"], "verbs": ["list"]}),
    ),
    "a Role that creates Deployments": ("narrow-roles", role(allow("deployments", "create", group="apps"))),
    "a Role that changes Jobs": ("narrow-roles", role(allow("jobs", "patch", group="batch"))),
    "a Role that creates pods": ("narrow-roles", role(allow("pods", "create"))),
    "a Role that runs commands in pods": ("narrow-roles", role(allow("pods/exec", "create"))),
    "a Role that makes tokens": ("narrow-roles", role(allow("serviceaccounts/token", "create"))),
    "a Role that changes Roles": ("narrow-roles", role(allow("roles", "update", group="rbac.authorization.k8s.io"))),
    "a Role on everything": ("no-rbac-wildcards", role(allow("*", "get"))),
    "a token that Kubernetes writes": (
        "no-secret-values",
        manifest("Secret", type="kubernetes.io/service-account-token"),
    ),
    "a bootstrap token": ("no-secret-values", manifest("Secret", type="bootstrap.kubernetes.io/token")),
    "a value in plain text": ("no-secret-values", manifest("Secret", stringData={"password": "hunter2"})),
    "a value in base64": ("no-secret-values", manifest("Secret", data={"password": "aHVudGVyMg=="})),
    # Data of others
    "Jazz's volume claim": ("own-references", volume(persistentVolumeClaim={"claimName": "jazz"})),
    "a copy of Jazz's volume": (
        "own-references",
        claim(dataSource={"kind": "PersistentVolumeClaim", "name": "jazz"}),
    ),
    "a copy of Jazz's volume by reference": (
        "own-references",
        claim(dataSourceRef={"kind": "PersistentVolumeClaim", "name": "jazz"}),
    ),
    "a snapshot of others": ("own-references", claim(dataSource={"kind": "VolumeSnapshot", "name": "jazz"})),
    "a volume by its name": ("own-references", claim(volumeName="pvc-of-jazz")),
    "a copy of Jazz's volume in a template": (
        "own-references",
        manifest(
            "StatefulSet",
            spec={
                "volumeClaimTemplates": [{"spec": {"dataSource": {"kind": "PersistentVolumeClaim", "name": "jazz"}}}]
            },
        ),
    ),
    "a copy of Jazz's volume in a pod": (
        "own-references",
        volume(
            ephemeral={
                "volumeClaimTemplate": {"spec": {"dataSource": {"kind": "PersistentVolumeClaim", "name": "jazz"}}}
            }
        ),
    ),
    # Nodes
    "a folder of the node": ("no-host-access", volume(hostPath={"path": "/"})),
    "a network file system": ("volume-types", volume(nfs={"server": "10.0.0.1", "path": "/"})),
    "a driver's volume": ("volume-types", volume(csi={"driver": "secrets-store.csi.k8s.io"})),
    "an image as a volume": ("volume-types", volume(image={"reference": "x"})),
    "a disk of a cloud": ("volume-types", volume(awsElasticBlockStore={"volumeID": "x"})),
    "a node by its name": ("no-scheduling-privileges", pods({"nodeName": "control-plane"})),
    "every taint tolerated": ("no-scheduling-privileges", pods({"tolerations": [{"operator": "Exists"}]})),
    "the control plane's taint tolerated": (
        "no-scheduling-privileges",
        pods({"tolerations": [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}]}),
    ),
    "a priority of the system": ("no-scheduling-privileges", pods({"priorityClassName": "system-node-critical"})),
    "the node's network": ("no-host-access", pods({"hostNetwork": True})),
    "a privileged container": ("no-privileges", container(securityContext={"privileged": True})),
    "an image by tag": ("images-by-digest", container(image="demo:latest")),
    # The network
    "a port of every node": ("internal-services", service(type="NodePort")),
    "a node port in a Service without a type": ("internal-services", service(ports=[{"port": 80, "nodePort": 30000}])),
    "a load balancer": ("internal-services", service(type="LoadBalancer")),
    "another name for a foreign host": ("internal-services", service(type="ExternalName", externalName="evil.example")),
    "addresses of others": ("internal-services", service(externalIPs=["10.0.0.1"])),
    "the path of another replica": ("own-ingress-paths", ingress("/replicas/alpha/")),
    "a path that begins like the own one": ("own-ingress-paths", ingress("/replicas/mine-too/")),
    "every path": ("own-ingress-paths", ingress("/")),
    "a path without text": ("own-ingress-paths", ingress(None)),
    "an expression as a path": ("own-ingress-paths", ingress(kind="ImplementationSpecific")),
    "another Service behind the own path": ("own-ingress-paths", ingress(backend="alpha")),
    "every unknown path": ("own-ingress-paths", ingress(defaultBackend={"service": {"name": "web"}})),
    "a route of another replica": ("own-ingress-paths", route("/replicas/alpha/")),
    "a route of every path": ("own-ingress-paths", route("/")),
    "a route without a path": ("own-ingress-paths", route(matches=[{"headers": [{"name": "a", "value": "b"}]}])),
    "a route without matches": ("own-ingress-paths", route(matches=[])),
    "a route without rules": ("own-ingress-paths", route(Rules=[])),
    "an expression as the path of a route": ("own-ingress-paths", route(kind="RegularExpression")),
    "another Service behind a route": ("own-ingress-paths", route(backend="alpha")),
    "a Service of another namespace behind a route": (
        "own-ingress-paths",
        route(backendRefs=[{"name": "web", "namespace": "other", "port": 80}]),
    ),
    "something else behind a route": (
        "own-ingress-paths",
        route(backendRefs=[{"group": "example.org", "kind": "Service", "name": "web"}]),
    ),
    "a route that mirrors requests": ("own-ingress-paths", route(filters=[{"type": "RequestMirror"}])),
    "a route that rewrites paths behind its Service": (
        "own-ingress-paths",
        route(backendRefs=[{"name": "web", "port": 80, "filters": [{"type": "URLRewrite"}]}]),
    ),
    "a route of the traffic of a Service": (
        "own-ingress-paths",
        route(ParentRefs=[{"group": "", "kind": "Service", "name": "alpha"}]),
    ),
    "a certificate of others": ("own-ingress-paths", ingress(tls=[{"hosts": ["x"], "secretName": "alpha-tls"}])),
    "the domain's certificate made for another Ingress": (
        "own-ingress-paths",
        annotated(ingress(tls=[{"secretName": "jazz-tls"}]), **{"cert-manager_io__issuer": "mine"}),
    ),
    "configuration of the ingress controller": (
        "own-ingress-paths",
        annotated(ingress(), nginx_ingress_kubernetes_io__server_snippet=""),
    ),
    "a network policy for every pod": ("reserved-names", selecting()),
    "a network policy for a replica": ("reserved-names", selecting(matchLabels={"reside.io/replica": "alpha"})),
    "a network policy for all replicas": (
        "reserved-names",
        selecting(matchExpressions=[{"key": "reside.io/replica", "operator": "Exists"}]),
    ),
    # The platform's place
    "pods behind the Service of a replica": (
        "reserved-names",
        pods({}, metadata={"labels": {"reside.io/replica": "alpha"}}),
    ),
    "a Service of the pods of a replica": ("reserved-names", service(selector={"reside.io/replica": "alpha"})),
    "an object of another stack": ("reserved-names", labelled(manifest("ConfigMap"), reside_io__stack="alpha")),
    "a Secret for the certificate of Jazz": ("reserved-names", manifest("Secret", "jazz-tls")),
    "a Secret for the certificate of another replica": ("reserved-names", manifest("Secret", "other-tls")),
    "a Service named as Jazz": ("reserved-names", manifest("Service", "jazz")),
    "a Deployment named as a version of Alpha": ("reserved-names", manifest("Deployment", "alpha-2")),
    "the ConfigMap that stops the Sentinel": ("reserved-names", manifest("ConfigMap", "reside-teardown")),
    "the Secret with the credentials of registries": ("reserved-names", manifest("Secret", "reside-registry")),
    "the Secret with the code of the claim": ("reserved-names", manifest("Secret", "super-admin-claim")),
    "the Secret with the environment of the Sentinel": (
        "reserved-names",
        manifest("Secret", "kubernetes-sentinel-store"),
    ),
    "a claim with a label of the platform": (
        "reserved-names",
        manifest(
            "StatefulSet",
            spec={"volumeClaimTemplates": [{"metadata": {"labels": {"reside.io/replica": "alpha"}}}]},
        ),
    ),
    "a forced patch": ("engine-annotations", annotated(manifest("ConfigMap"), pulumi_com__patchForce="true")),
    "another field manager": (
        "engine-annotations",
        annotated(manifest("ConfigMap"), pulumi_com__patchFieldManager="x"),
    ),
    "an image that others may choose": (
        "yielded-fields",
        annotated(container(), reside_io__yield="spec.template.spec.containers"),
    ),
    "a whole spec that others may choose": ("yielded-fields", annotated(container(), reside_io__yield="spec")),
    "addresses of a Service that others may choose": (
        "yielded-fields",
        annotated(service(), reside_io__yield="spec.externalIPs"),
    ),
    "rules of a Role that others may choose": ("yielded-fields", annotated(role(), reside_io__yield="rules")),
    "values of a Secret that others may choose": (
        "yielded-fields",
        annotated(manifest("Secret"), reside_io__yield="data"),
    ),
    "an annotation of ours that others may choose": (
        "yielded-fields",
        annotated(manifest("ConfigMap"), reside_io__yield='metadata.annotations["reside.io/yield"]'),
    ),
    "a label of ours that others may choose": (
        "yielded-fields",
        annotated(manifest("ConfigMap"), reside_io__yield='metadata.labels["app.kubernetes.io/managed-by"]'),
    ),
    "an object of another namespace": (
        "namespace-confinement",
        {"kind": "ConfigMap", "metadata": {"name": "web", "namespace": "kube-system", "labels": LABELS}},
    ),
    "a kind of the whole cluster": ("allowed-kinds", manifest("ClusterRole")),
    "an object that the Sentinel would not manage": (
        "managed-by-label",
        {"kind": "ConfigMap", "metadata": {"name": "a"}},
    ),
}


def broken(obj: dict[str, Any], context: Context = STACK) -> list[str]:
    """Return the rules that an object breaks in a stack that also has a Service `web` and a Secret `web`."""
    own = [manifest("Service"), manifest("Secret")]
    name = f"{obj['kind']}/{obj['metadata']['name']}"
    return [found.rule for found in check([obj, *own], context) if found.object == name]


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_object_is_refused_by_its_rule_alone(what: str) -> None:
    rule, obj = HOSTILE[what]
    assert set(broken(obj)) == {rule}


def test_the_table_has_at_least_forty_objects_and_shows_each_rule() -> None:
    assert len(HOSTILE) >= 40
    assert {rule for rule, _ in HOSTILE.values()} == {name for name, rule in RULES.items() if rule.level == "mandatory"}


def test_an_ordinary_stack_passes() -> None:
    reference = annotated(manifest("Secret"), reside_io__secret_references='{"password": "co_z1"}')
    pod = {
        "serviceAccountName": "web",
        "imagePullSecrets": [{"name": "web"}],
        "volumes": [
            {"name": "a", "configMap": {"name": "web"}},
            {"name": "b", "projected": {"sources": [{"secret": {"name": "web"}}, {"configMap": {"name": "web"}}]}},
            {"name": "c", "persistentVolumeClaim": {"claimName": "web"}},
            {"name": "d", "ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"]}}}},
            {"name": "e", "downwardAPI": {}},
        ],
        "tolerations": [{"key": "node.kubernetes.io/unreachable", "operator": "Exists", "tolerationSeconds": 30}],
        "containers": [{"name": "main", "image": IMAGE, "envFrom": [{"secretRef": {"name": "web"}}]}],
    }
    objects = [
        manifest("ServiceAccount"),
        manifest("ConfigMap"),
        reference,
        claim(accessModes=["ReadWriteOnce"]),
        pods(pod, metadata={"labels": {"app": "web", "reside.io/stack": "mine"}}),
        role(allow("secrets", "get", resourceNames=["web"]), allow("pods", "get", "list")),
        binding("Role", "web"),
        service(clusterIP="None"),
        ingress(tls=[{"hosts": ["example.org"], "secretName": "mine-tls"}, {"secretName": "jazz-tls"}]),
        route(),
        route("/replicas/mine/deep", kind="Exact", timeouts={"request": "60s"}),
        selecting(matchLabels={"app": "web"}),
    ]
    assert check(objects, STACK) == []
    assert check([pods({"serviceAccountName": "default"})], STACK) == []


@pytest.mark.parametrize("name", ["jazz", "alpha", "kubernetes-sentinel", "platform", "alpha-1"])
def test_a_stack_with_a_name_of_the_platform_is_refused(name: str) -> None:
    obj = labelled(manifest("ConfigMap"), reside_io__stack=name)
    assert broken(obj, Context("reside", stack=name)) == ["reserved-names"]


def test_what_only_alpha_may_declare_passes_in_a_stack_of_alpha() -> None:
    shared = [
        ("kubernetes-sentinel", pods({"serviceAccountName": "kubernetes-sentinel"})),
        ("alpha", env(secretKeyRef={"name": "super-admin-claim", "key": "code"})),
        ("greeter", pods({"imagePullSecrets": [{"name": "reside-registry"}]})),
        ("platform", role(allow("secrets", "get"), allow("deployments", "create", group="apps"))),
        ("greeter", labelled(manifest("Secret", stringData={"accountId": "co_z1"}), reside_io__replica="greeter")),
    ]
    for stack, obj in shared:
        obj["metadata"]["labels"].pop("reside.io/stack")
        assert broken(obj, Context("reside", stack=stack, trusted=True)) == []
        assert broken(obj, Context("reside", stack=stack)) != []


def test_a_replica_of_alpha_may_not_use_the_platforms_objects() -> None:
    obj = pods({"serviceAccountName": "kubernetes-sentinel"})
    assert broken(obj, Context("reside", stack="greeter", trusted=True)) == ["own-references"]


def test_objects_without_a_stack_are_checked_by_the_other_rules_alone() -> None:
    """These are the objects of a Pulumi program that uses the policy pack."""
    found = {what for what, (_, obj) in HOSTILE.items() if broken(obj, Context("reside"))}
    assert "a privileged container" in found
    assert "a load balancer" in found
    assert "the Sentinel's ServiceAccount" not in found
