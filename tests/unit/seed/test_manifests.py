"""The objects of the platform and the seed: within policy, labelled for adoption and sweep, placeholders kept."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from reside.model.constants import FIELD_MANAGER, MANAGED_BY_LABEL, SENTINEL_ROLES
from reside.model.errors import InvalidInput
from reside.policy import rules
from reside.seed import platform, preflight, rendering, settings
from reside.seed.backups import objects as saved

DIGEST = "sha256:" + "b" * 64
SETTINGS = settings.parse(
    {
        "namespace": "ns",
        "access": "direct",
        "kubeconfig": "/home/me/kubeconfig",
        "images": {
            name: f"registry.reside.internal/reside/{name}@{DIGEST}"
            for name in ("alpha", "kubernetes-sentinel", "seed", "jazz", "etcd")
        },
    },
    "test",
)
OUTSIDE = SETTINGS.model_copy(update={"domain": "example.org", "cluster_issuer": "letsencrypt"})
PLATFORM = platform.platform_stack(SETTINGS, "co_zEngine")
RECORD, *SEED = rendering.seed_objects(SETTINGS)


def pods(objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [o["spec"]["template"]["spec"] for o in objects if "template" in o.get("spec", {})]


@pytest.mark.parametrize("objects", [PLATFORM, SEED])
def test_everything_is_within_policy(objects: list[dict[str, Any]]) -> None:
    assert rules.check(objects, rules.Context("ns")) == []


def test_the_platform_is_a_stack_that_alpha_alone_may_declare() -> None:
    found = rules.review(PLATFORM, rules.Context("ns", stack="platform", trusted=True))
    assert {violation.rule for violation in found} <= {"network-policies"}
    assert {found.rule for found in rules.check(PLATFORM, rules.Context("ns", stack="platform"))} == {
        "narrow-roles",
        "reserved-names",
    }


@pytest.mark.parametrize("objects", [PLATFORM, SEED])
def test_everything_carries_the_label_and_the_namespace(objects: list[dict[str, Any]]) -> None:
    for found in objects:
        assert found["metadata"]["labels"][MANAGED_BY_LABEL] == FIELD_MANAGER
        assert found["metadata"]["namespace"] == "ns"


def test_the_record_of_the_bootstrap_outlives_the_sweep() -> None:
    assert (RECORD["metadata"], RECORD["data"]["result"]) == ({"name": "reside-cluster", "namespace": "ns"}, "pending")


def test_with_a_domain_jazz_is_served_at_its_root_and_nothing_else() -> None:
    objects = platform.platform_stack(OUTSIDE, "co_zEngine")
    [ingress] = [o for o in objects if o["kind"] == "Ingress"]
    [rule] = ingress["spec"]["rules"]
    backend = {"service": {"name": "jazz", "port": {"number": 4200}}}
    assert rule == {"host": "example.org", "http": {"paths": [{"path": "/", "pathType": "Exact", "backend": backend}]}}
    assert ingress["spec"]["tls"] == [{"hosts": ["example.org"], "secretName": "jazz-tls"}]
    assert ingress["metadata"]["annotations"] == {"cert-manager.io/cluster-issuer": "letsencrypt"}
    assert not [o for o in PLATFORM if o["kind"] == "Ingress"]


def test_the_ingress_of_jazz_has_the_annotations_for_the_certificate_of_the_domain() -> None:
    annotations = {"example.org/timeout": "60", "cert-manager.io/duration": "2160h"}
    [ingress] = platform.ingresses(OUTSIDE.model_copy(update={"ingress_annotations": annotations}))
    issuer = {"cert-manager.io/cluster-issuer": "letsencrypt"}
    assert ingress["metadata"]["annotations"] == annotations | issuer


def test_a_gateway_serves_jazz_by_a_route_and_the_sentinel_may_manage_it() -> None:
    chosen = OUTSIDE.model_copy(update={"cluster_issuer": None, "gateway": "edge/public"})
    objects = platform.platform_stack(chosen, "co_zEngine")
    assert not [o for o in objects if o["kind"] == "Ingress"]
    [route] = [o for o in objects if o["kind"] == "HTTPRoute"]
    [rule] = route["spec"]["rules"]
    assert rule["matches"] == [{"path": {"type": "Exact", "value": "/"}}]
    assert rules.check(objects, rules.Context("ns", stack="platform", trusted=True)) == []
    [role] = [o for o in objects if o["kind"] == "Role" and o["metadata"]["name"] == "kubernetes-sentinel-routes"]
    assert role["rules"] == platform.route_rules()
    assert role["metadata"]["annotations"] == {"reside.io/keep": "true"}
    [seed] = [o for o in platform.seed_access("ns", routes=True) if o["kind"] == "Role"]
    assert seed["rules"] == [rule for o in objects if o["kind"] == "Role" for rule in o["rules"]]
    assert not [o for o in PLATFORM if o["metadata"]["name"] == "kubernetes-sentinel-routes"]


def test_behind_a_gateway_the_manifest_has_the_domain_as_its_only_placeholder() -> None:
    text = rendering.render(SETTINGS.model_copy(update={"gateway": "edge/public"}))
    assert rendering.DOMAIN_VARIABLE in text
    assert rendering.ISSUER_VARIABLE not in text
    given = {rendering.DOMAIN_VARIABLE: "example.org"}
    assert rendering.external_names(given, gateway=True) == {"domain": "example.org"}
    assert rendering.external_names({}, gateway=True) == {}


def test_alpha_alone_may_declare_the_ingress_of_jazz() -> None:
    objects = [o for o in platform.platform_stack(OUTSIDE, "co_zEngine") if o["kind"] in ("Ingress", "Service")]
    assert rules.check(objects, rules.Context("ns", stack="platform", trusted=True)) == []
    found = rules.check(objects, rules.Context("ns", stack="platform"))
    assert "own-ingress-paths" in {violation.rule for violation in found}


def test_the_ingress_controller_reaches_jazz_and_not_etcd() -> None:
    outside = OUTSIDE.model_copy(update={"network_policies": "ingress", "ingress_namespace": "ingress-nginx"})
    found = {
        policy["metadata"]["name"]: [peer for rule in policy["spec"]["ingress"] for peer in rule["from"]]
        for policy in platform.network_policies(outside)
    }
    controllers = {name: [peer for peer in peers if "namespaceSelector" in peer] for name, peers in found.items()}
    label = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["ingress-nginx"]}
    assert controllers == {"jazz": [{"namespaceSelector": {"matchExpressions": [label]}}], "etcd": []}


def test_the_claim_outlives_the_sweep() -> None:
    assert MANAGED_BY_LABEL not in platform.claim_secret("ns", "code")["metadata"]["labels"]


@pytest.mark.parametrize("pod", [*pods(PLATFORM), *pods(SEED)])
def test_pods_are_unprivileged_and_have_no_service_links(pod: dict[str, Any]) -> None:
    assert pod["enableServiceLinks"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert all("requests" in c["resources"] for c in pod["containers"])


@pytest.mark.parametrize("pod", pods(PLATFORM))
def test_the_platform_has_probes_and_time_to_stop(pod: dict[str, Any]) -> None:
    for container in pod["containers"]:
        assert {"livenessProbe", "readinessProbe"} <= container.keys()
    assert pod["terminationGracePeriodSeconds"] >= 30


@pytest.mark.parametrize(("chosen", "mode"), [({}, "members"), ({"jazz_mode": "open"}, "open")])
def test_the_sync_server_stores_only_what_could_count_unless_set_otherwise(chosen: dict[str, str], mode: str) -> None:
    found = platform.platform_stack(SETTINGS.model_copy(update=chosen), "co_zEngine")
    containers = [container for pod in pods(found) for container in pod["containers"] if container["name"] == "jazz"]
    assert [entry["value"] for entry in containers[0]["env"] if entry["name"] == "MODE"] == [mode]


def test_the_platform_stack_holds_no_secret_value() -> None:
    secrets = [o for o in PLATFORM if o["kind"] == "Secret"]
    assert [s["metadata"]["name"] for s in secrets] == [platform.ENGINE_SECRET]
    assert all("data" not in s and "stringData" not in s for s in secrets)


def test_the_seed_may_do_exactly_what_the_sentinel_may() -> None:
    [seed] = [o for o in SEED if o["kind"] == "Role"]
    assert seed["rules"] == [rule for o in PLATFORM if o["kind"] == "Role" for rule in o["rules"]]
    bindings = [o for o in PLATFORM if o["kind"] == "RoleBinding"]
    assert {o["subjects"][0]["name"] for o in bindings} == {"kubernetes-sentinel"}
    assert {o["roleRef"]["name"] for o in bindings} == {o["metadata"]["name"] for o in PLATFORM if o["kind"] == "Role"}


def test_a_right_that_earlier_releases_did_not_have_is_in_a_role_that_they_keep() -> None:
    """The Sentinel of a running cluster would revert a change of its Role, and could not make it itself."""
    [role] = [o for o in PLATFORM if o["metadata"]["name"] == "kubernetes-sentinel" and o["kind"] == "Role"]
    assert role["rules"] == platform.sentinel_rules()
    names = ("kubernetes-sentinel-events", "kubernetes-sentinel-logs")
    later = [o for name in names for o in PLATFORM if o["metadata"]["name"] == name]
    assert [o["kind"] for o in later] == ["Role", "RoleBinding"] * 2
    assert all(o["metadata"]["annotations"] == {"reside.io/keep": "true"} for o in later)


def test_each_role_of_the_sentinel_is_in_a_backup_and_may_be_granted_by_who_bootstraps() -> None:
    """The Sentinel of a restored cluster could not create it, as Kubernetes does not let it extend its own rights."""
    chosen = SETTINGS.model_copy(update={"gateway": "edge/public"})
    roles = [o for o in platform.platform_stack(chosen, "co_zEngine") if o["kind"] == "Role"]
    assert {o["metadata"]["name"] for o in roles} == set(SENTINEL_ROLES)
    assert {*saved.NAMED["Role"]} == {*saved.NAMED["RoleBinding"]} == set(SENTINEL_ROLES)
    assert [rule for o in roles for rule in o["rules"]] == preflight.required(chosen)


def test_the_seed_uses_in_cluster_access() -> None:
    [pod] = pods(SEED)
    environment = {e["name"]: e["value"] for e in pod["containers"][0]["env"]}
    found = settings.from_environment(environment)
    assert found is not None
    assert (found.access, found.kubeconfig, found.namespace) == ("in-cluster", None, "ns")


def test_placeholders_in_the_manifest_are_ignored_until_filled() -> None:
    text = rendering.render(SETTINGS)
    assert "${RESIDE_BOOTSTRAP_DOMAIN}" in text
    assert "${RESIDE_BOOTSTRAP_CLUSTER_ISSUER}" in text
    assert [d["kind"] for d in yaml.safe_load_all(text)] == [
        "ConfigMap",
        "ServiceAccount",
        "Role",
        "RoleBinding",
        "Job",
    ]
    left = {v: rendering.placeholder(v) for v in (rendering.DOMAIN_VARIABLE, rendering.ISSUER_VARIABLE)}
    assert rendering.external_names(left) == {}


def test_filled_placeholders_are_the_settings() -> None:
    filled = {rendering.DOMAIN_VARIABLE: "example.org", rendering.ISSUER_VARIABLE: "letsencrypt"}
    assert rendering.external_names(filled) == {"domain": "example.org", "cluster_issuer": "letsencrypt"}


@pytest.mark.parametrize(
    ("given", "missing"),
    [(rendering.DOMAIN_VARIABLE, rendering.ISSUER_VARIABLE), (rendering.ISSUER_VARIABLE, rendering.DOMAIN_VARIABLE)],
)
def test_one_placeholder_without_the_other_is_an_error(given: str, missing: str) -> None:
    with pytest.raises(InvalidInput, match=missing):
        rendering.external_names({given: "something"})


def test_settings_fill_the_placeholders() -> None:
    named = SETTINGS.model_copy(update={"domain": "example.org", "cluster_issuer": "letsencrypt"})
    assert "${" not in rendering.render(named)


def test_the_platform_and_the_seed_pull_from_the_clusters_repository_with_its_credentials() -> None:
    private = SETTINGS.model_copy(update={"image_repository": "ghcr.io/acme/reside", "registry_credentials": True})
    objects = [*platform.storage(private), *rendering.seed_objects(private)]
    pods = [each["spec"]["template"]["spec"] for each in objects if each["kind"] in ("StatefulSet", "Job")]
    assert len(pods) == 3
    for pod in pods:
        assert pod["imagePullSecrets"] == [{"name": "reside-registry"}]
        assert pod["containers"][0]["image"].startswith("ghcr.io/acme/reside/")
    (container,) = pods[-1]["containers"]
    (folder,) = [each["value"] for each in container["env"] if each["name"] == "DOCKER_CONFIG"]
    assert folder in [each["mountPath"] for each in container["volumeMounts"]]
    assert pods[-1]["volumes"][-1]["secret"]["secretName"] == "reside-registry"
