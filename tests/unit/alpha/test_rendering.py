"""The objects of a replica: names, labels, environment and hardening of docs/model.md, section 6."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from unit.alpha.entities import CLUSTER, GREETER, GREETING, OWNER, digest, replica

from reside.alpha.stacks.render import render
from reside.model import constants, identities
from reside.model.entities import Management
from reside.policy import rules

if TYPE_CHECKING:
    from reside.model.stacks import DesiredStack, K8sObject

DOMAIN = CLUSTER.model_copy(update={"domain": "example.org", "cluster_issuer": "letsencrypt"})


def rendered(*args: Any, **kwargs: Any) -> dict[str, K8sObject]:
    stack = render(*args, **{"owner": OWNER, "serving": {GREETING}, **kwargs})
    return dict(zip(stack.keys(), stack.objects, strict=True))


def pod(objects: dict[str, K8sObject], key: str) -> dict[str, Any]:
    spec = objects[key]["spec"]["template"]["spec"]
    assert isinstance(spec, dict)
    return spec


def environment(objects: dict[str, K8sObject], key: str) -> dict[str, Any]:
    return {e["name"]: e.get("value", e.get("valueFrom")) for e in pod(objects, key)["containers"][0]["env"]}


def test_a_long_running_replica_with_a_method_has_secret_deployment_and_service() -> None:
    assert sorted(rendered(replica("unknown"), CLUSTER)) == [
        "Deployment/greeter-1",
        "Secret/greeter",
        "Service/greeter",
    ]


def test_without_a_method_there_is_no_service_even_with_a_domain() -> None:
    assert sorted(rendered(replica("unknown"), DOMAIN, serving=())) == ["Deployment/greeter-1", "Secret/greeter"]


def test_an_ingress_needs_a_service_and_a_domain() -> None:
    ingress = rendered(replica("unknown"), DOMAIN)["Ingress/greeter"]
    rule = ingress["spec"]["rules"][0]
    assert rule["host"] == "example.org"
    assert rule["http"]["paths"][0]["path"] == "/replicas/greeter/"
    assert rule["http"]["paths"][0]["backend"]["service"] == {"name": "greeter", "port": {"number": 80}}
    assert ingress["spec"]["tls"] == [{"hosts": ["example.org"], "secretName": "jazz-tls"}]
    assert "annotations" not in ingress["metadata"], "cert-manager makes the certificate for the Ingress of Jazz alone"


def test_an_ingress_has_the_class_and_the_annotations_of_the_cluster() -> None:
    annotations = {"example.org/timeout": "60", "cert-manager.io/duration": "2160h"}
    chosen = {"ingress_class": "nginx", "ingress_annotations": annotations}
    ingress = rendered(replica("unknown"), DOMAIN.model_copy(update=chosen))["Ingress/greeter"]
    assert ingress["spec"]["ingressClassName"] == "nginx"
    assert ingress["metadata"]["annotations"] == {"example.org/timeout": "60"}


def test_a_gateway_serves_the_replica_by_a_route_with_every_default_of_its_definition() -> None:
    chosen = {"cluster_issuer": None, "gateway": "edge/public/https"}
    objects = rendered(replica("unknown"), DOMAIN.model_copy(update=chosen))
    assert "Ingress/greeter" not in objects
    route = objects["HTTPRoute/greeter"]
    group = "gateway.networking.k8s.io"
    assert route["apiVersion"] == f"{group}/v1"
    parent = {"group": group, "kind": "Gateway", "namespace": "edge", "name": "public", "sectionName": "https"}
    assert route["spec"] == {
        "parentRefs": [parent],
        "hostnames": ["example.org"],
        "rules": [
            {
                "matches": [{"path": {"type": "PathPrefix", "value": "/replicas/greeter/"}}],
                "backendRefs": [{"group": "", "kind": "Service", "name": "greeter", "port": 80, "weight": 1}],
            }
        ],
    }


def test_every_object_is_labelled_and_in_the_namespace() -> None:
    objects = rendered(replica("unknown"), DOMAIN)
    assert len(objects) == 4
    for manifest in objects.values():
        assert manifest["metadata"]["namespace"] == "reside"
        labels = manifest["metadata"]["labels"]
        assert labels["app.kubernetes.io/managed-by"] == "kubernetes-sentinel"
        assert labels["reside.io/replica"] == labels["reside.io/stack"] == "greeter"


def test_the_image_is_identity_and_digest_never_a_tag() -> None:
    container = pod(rendered(replica("unknown"), CLUSTER), "Deployment/greeter-1")["containers"][0]
    assert container["image"] == f"{GREETER}@{digest(1)}"


def test_the_service_selects_the_replica_alone_so_that_both_versions_serve_during_a_change() -> None:
    spec = rendered(replica("running-outdated", "starting"), CLUSTER)["Service/greeter"]["spec"]
    assert spec["selector"] == {"reside.io/replica": "greeter"}
    assert [(p["port"], p["targetPort"]) for p in spec["ports"]] == [(80, 8080)]


def test_a_deployment_selects_its_own_version_and_its_pods_have_the_selected_labels() -> None:
    objects = rendered(replica("running-outdated", "starting"), CLUSTER)
    for number in (1, 2):
        spec = objects[f"Deployment/greeter-{number}"]["spec"]
        assert spec["selector"]["matchLabels"] == {"reside.io/replica": "greeter", "reside.io/version": str(number)}
        assert spec["selector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()


def test_the_secret_holds_the_account_in_plain_and_the_agent_secret_as_a_reference() -> None:
    secret = rendered(replica("unknown"), CLUSTER)["Secret/greeter"]
    assert secret["stringData"] == {"accountId": "co_zGreeter"}
    annotation = secret["metadata"]["annotations"][constants.SECRET_REFERENCES_ANNOTATION]
    assert json.loads(annotation) == {"agentSecret": "co_zSecret"}


def test_a_candidate_without_an_account_yet_has_no_reference() -> None:
    secret = rendered(replica("unknown", agent_secret=None), CLUSTER)["Secret/greeter"]
    assert "annotations" not in secret["metadata"]


def test_the_environment_is_that_of_the_model() -> None:
    found = environment(rendered(replica("unknown"), DOMAIN), "Deployment/greeter-1")
    assert found == {
        "RESIDE_ACCOUNT_ID": {"secretKeyRef": {"name": "greeter", "key": "accountId"}},
        "RESIDE_AGENT_SECRET": {"secretKeyRef": {"name": "greeter", "key": "agentSecret"}},
        "RESIDE_REPLICA_NAME": "greeter",
        "RESIDE_CONTROL_BLOCK_ID": "co_zBlock",
        "RESIDE_SYNC_SERVER_URL": "ws://jazz:4200",
        "RESIDE_ETCD_HOSTS": "http://etcd:2379",
        "RESIDE_ACCESS_CONTEXT": "internal",
        "RESIDE_LISTEN_PORT": "8080",
        "RESIDE_EXTERNAL_ENDPOINT": "https://example.org",
    }


def test_pods_get_the_address_for_traces_if_the_cluster_has_one() -> None:
    cluster = CLUSTER.model_copy(update={"traces_endpoint": "http://collector:4318"})
    found = environment(rendered(replica("unknown"), cluster), "Deployment/greeter-1")
    assert found["OTEL_EXPORTER_OTLP_ENDPOINT"] == "http://collector:4318"


@pytest.mark.parametrize("kind", ["long-running", "oneshot"])
def test_pods_are_unprivileged_and_without_service_links_or_api_token(kind: str) -> None:
    key = "Deployment/greeter-1" if kind == "long-running" else "Job/greeter-1"
    spec = pod(rendered(replica("unknown", kind=kind), CLUSTER), key)
    assert spec["enableServiceLinks"] is False
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"]["runAsNonRoot"] is True
    context = spec["containers"][0]["securityContext"]
    assert context["allowPrivilegeEscalation"] is False
    assert context["capabilities"] == {"drop": ["ALL"]}
    assert context["readOnlyRootFilesystem"] is True
    assert {mount["mountPath"] for mount in spec["containers"][0]["volumeMounts"]} == {"/tmp"}  # noqa: S108
    assert spec["containers"][0]["resources"]["requests"].keys() == {"cpu", "memory"}


def test_pods_are_probed_and_leave_their_service_before_they_stop() -> None:
    spec = pod(rendered(replica("unknown"), CLUSTER), "Deployment/greeter-1")
    container = spec["containers"][0]
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"
    assert 0 < container["lifecycle"]["preStop"]["sleep"]["seconds"] < spec["terminationGracePeriodSeconds"]


def test_pods_of_an_image_without_probes_are_not_probed_and_leave_their_service_before_they_stop() -> None:
    loaded = replica("unknown")
    versions = (loaded.versions[0].model_copy(update={"probes": "none"}),)
    objects = rendered(loaded.model_copy(update={"versions": versions}), CLUSTER)
    container = pod(objects, "Deployment/greeter-1")["containers"][0]
    assert [name for name in container if name.endswith("Probe")] == []
    assert container["lifecycle"]["preStop"]["sleep"]["seconds"] > 0
    assert "Service/greeter" in objects


def test_the_next_version_of_a_replica_that_is_not_scalable_waits_for_no_sleep() -> None:
    spec = pod(rendered(replica("unknown", scalable=False), CLUSTER), "Deployment/greeter-1")
    assert "lifecycle" not in spec["containers"][0]


def test_a_replicas_placement_group_overrides_the_default_of_the_cluster() -> None:
    cluster = CLUSTER.model_copy(update={"default_placement_group": "shared"})
    own = replica("unknown", management=Management(placement_group="big"))
    assert pod(rendered(own, cluster), "Deployment/greeter-1")["nodeSelector"] == {"reside.io/placement-group": "big"}
    default = pod(rendered(replica("unknown"), cluster), "Deployment/greeter-1")
    assert default["nodeSelector"] == {"reside.io/placement-group": "shared"}
    assert "nodeSelector" not in pod(rendered(replica("unknown"), CLUSTER), "Deployment/greeter-1")


@pytest.mark.parametrize(("scalable", "strategy"), [(True, "RollingUpdate"), (False, "Recreate")])
def test_only_scalable_replicas_may_have_two_pods_when_a_setting_changes(scalable: bool, strategy: str) -> None:
    spec = rendered(replica("unknown", scalable=scalable), CLUSTER)["Deployment/greeter-1"]["spec"]
    assert spec["strategy"]["type"] == strategy


def test_equal_stacks_have_equal_revisions() -> None:
    def once() -> DesiredStack:
        return render(replica("running"), CLUSTER, owner=OWNER)

    assert once().revision == once().revision
    assert once().revision != render(replica("running"), DOMAIN, owner=OWNER).revision


def test_the_seed_is_never_rendered() -> None:
    seed = replica("completed", kind="oneshot", identity=constants.SEED_IDENTITY)
    assert render(seed, CLUSTER, owner=OWNER).objects == ()


def test_alphas_pod_gets_domain_mirrors_and_a_reference_to_the_claim_code() -> None:
    cluster = DOMAIN.model_copy(update={"registry_mirrors": {"registry.reside.internal": "http://10.0.0.1:5000"}})
    alpha = replica("unknown", name="alpha", identity=constants.ALPHA_IDENTITY)
    found = environment(rendered(alpha, cluster), "Deployment/alpha-1")
    assert found["RESIDE_DOMAIN"] == "example.org"
    assert found["RESIDE_CLUSTER_ISSUER"] == "letsencrypt"
    assert json.loads(found["RESIDE_REGISTRY_MIRRORS"]) == cluster.registry_mirrors
    assert found["RESIDE_NAMESPACE"] == {"fieldRef": {"fieldPath": "metadata.namespace"}}
    assert found["RESIDE_CLAIM_CODE"]["secretKeyRef"] == {"name": "super-admin-claim", "key": "code", "optional": True}


def test_images_are_pulled_from_the_clusters_repository_with_its_credentials() -> None:
    cluster = CLUSTER.model_copy(update={"image_repository": "ghcr.io/acme/reside", "registry_credentials": True})
    pod = rendered(replica("running"), cluster)["Deployment/greeter-1"]["spec"]["template"]["spec"]
    assert pod["containers"][0]["image"].startswith("ghcr.io/acme/reside/examples/greeter@sha256:")
    assert pod["imagePullSecrets"] == [{"name": "reside-registry"}]
    assert "registry" not in {volume["name"] for volume in pod["volumes"]}


def test_pods_get_the_clusters_identity_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    variable = "RESIDE_IDENTITY_REPOSITORY"
    assert variable not in environment(rendered(replica("running"), CLUSTER), "Deployment/greeter-1")
    monkeypatch.setattr(identities._process, "repository", "ghcr.io/acme/reside")
    assert environment(rendered(replica("running"), CLUSTER), "Deployment/greeter-1")[variable] == "ghcr.io/acme/reside"
    alpha = replica("unknown", name="alpha", identity="ghcr.io/acme/reside/replicas/alpha")
    assert "RESIDE_CLAIM_CODE" in environment(rendered(alpha, CLUSTER), "Deployment/alpha-1")


def test_alpha_reads_registries_with_the_clusters_credentials() -> None:
    cluster = CLUSTER.model_copy(update={"registry_credentials": True})
    objects = rendered(replica("unknown", name="alpha", identity=constants.ALPHA_IDENTITY), cluster)
    pod = objects["Deployment/alpha-1"]["spec"]["template"]["spec"]
    (volume,) = [volume["secret"] for volume in pod["volumes"] if volume["name"] == "registry"]
    assert volume["secretName"] == "reside-registry"
    assert volume["items"] == [{"key": ".dockerconfigjson", "path": "config.json"}]
    folder = environment(objects, "Deployment/alpha-1")["DOCKER_CONFIG"]
    assert {"name": "registry", "mountPath": folder, "readOnly": True} in pod["containers"][0]["volumeMounts"]


def test_the_sentinel_has_its_account_its_volume_and_its_passphrase() -> None:
    sentinel = replica("unknown", name="kubernetes-sentinel", identity=constants.SENTINEL_IDENTITY)
    objects = rendered(sentinel, CLUSTER)
    spec = pod(objects, "Deployment/kubernetes-sentinel-1")
    assert spec["serviceAccountName"] == "kubernetes-sentinel"
    assert spec["automountServiceAccountToken"] is True
    assert spec["volumes"][1]["persistentVolumeClaim"] == {"claimName": "kubernetes-sentinel"}
    assert spec["containers"][0]["volumeMounts"][1]["mountPath"] == "/var/lib/reside"
    found = environment(objects, "Deployment/kubernetes-sentinel-1")
    assert found["RESIDE_STATE_DIR"] == "/var/lib/reside"
    assert found["RESIDE_ENGINE_PASSPHRASE"] == {
        "secretKeyRef": {"name": "kubernetes-sentinel-engine", "key": "passphrase"}
    }


def test_the_sentinel_gets_its_backend_and_credentials_only_if_the_cluster_has_a_store() -> None:
    sentinel = replica("unknown", name="kubernetes-sentinel", identity=constants.SENTINEL_IDENTITY)
    settings = {"state_backend": "s3://states/a?region=x", "secrets_provider": "awskms://alias/reside?region=x"}
    stored = CLUSTER.model_copy(update=settings)
    key = "Deployment/kubernetes-sentinel-1"
    objects = rendered(sentinel, stored)
    found = environment(objects, key)
    assert found["RESIDE_STATE_BACKEND"] == settings["state_backend"]
    assert found["RESIDE_SECRETS_PROVIDER"] == settings["secrets_provider"]
    secret = [{"secretRef": {"name": "kubernetes-sentinel-store", "optional": True}}]
    assert pod(objects, key)["containers"][0]["envFrom"] == secret
    back = CLUSTER.model_copy(update={"state_backend": "volume"})
    assert pod(rendered(sentinel, back), key)["containers"][0]["envFrom"] == secret
    assert "envFrom" not in pod(rendered(sentinel, CLUSTER), key)["containers"][0]
    assert "envFrom" not in pod(rendered(replica("unknown"), stored), "Deployment/greeter-1")["containers"][0]


def test_only_alpha_leaves_a_dead_node_early() -> None:
    alpha = pod(
        rendered(replica("unknown", name="alpha", identity=constants.ALPHA_IDENTITY), CLUSTER), "Deployment/alpha-1"
    )
    assert {(each["key"], each["effect"], each["tolerationSeconds"]) for each in alpha["tolerations"]} == {
        ("node.kubernetes.io/not-ready", "NoExecute", 30),
        ("node.kubernetes.io/unreachable", "NoExecute", 30),
    }
    sentinel = replica("unknown", name="kubernetes-sentinel", identity=constants.SENTINEL_IDENTITY)
    for objects, key in (
        (rendered(sentinel, CLUSTER), "Deployment/kubernetes-sentinel-1"),
        (rendered(replica("unknown"), CLUSTER), "Deployment/greeter-1"),
    ):
        assert "tolerations" not in pod(objects, key)


def test_all_versions_of_the_sentinel_run_on_the_node_of_their_volume() -> None:
    sentinel = replica("running-outdated", "starting", name="kubernetes-sentinel", identity=constants.SENTINEL_IDENTITY)
    objects = rendered(sentinel, CLUSTER)
    for version in (1, 2):
        deployment = objects[f"Deployment/kubernetes-sentinel-{version}"]
        assert deployment["spec"]["replicas"] == 1, "both run during an update"
        affinity = pod(objects, f"Deployment/kubernetes-sentinel-{version}")["affinity"]
        (term,) = affinity["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        assert term["topologyKey"] == "kubernetes.io/hostname"
        labels = deployment["spec"]["template"]["metadata"]["labels"]
        assert term["labelSelector"]["matchLabels"].items() <= labels.items(), "the first pod attracts itself"
        (other,) = affinity["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        assert other["labelSelector"] == term["labelSelector"], "the scheduler looks again when a pod is deleted"
        assert other["topologyKey"] != term["topologyKey"], "it separates nothing"
    assert "affinity" not in pod(rendered(replica("unknown"), CLUSTER), "Deployment/greeter-1")


@pytest.mark.parametrize("identity", [GREETER, constants.ALPHA_IDENTITY, constants.SENTINEL_IDENTITY])
@pytest.mark.parametrize("kind", ["long-running", "oneshot"])
def test_rendered_objects_obey_the_policy(identity: str, kind: str) -> None:
    name = identity.rpartition("/")[2]
    subject = replica("running-outdated", "starting", kind=kind, identity=identity, name=name)
    stack = render(subject, DOMAIN, owner=OWNER, serving={GREETING})
    context = rules.Context(CLUSTER.namespace, stack=stack.name, trusted=True)
    assert {found.rule for found in rules.review(stack.objects, context)} <= {"network-policies"}


def test_the_sentinel_gets_the_policy_of_the_cluster() -> None:
    subject = replica("running", identity=constants.SENTINEL_IDENTITY, name=constants.SENTINEL_NAME)
    policy = {"levels": {"read-only-root": "mandatory"}}
    key = f"Deployment/{constants.SENTINEL_NAME}-1"
    found = environment(rendered(subject, CLUSTER.model_copy(update={"policy": policy})), key)
    assert found["RESIDE_POLICY"] == '{"levels": {"read-only-root": "mandatory"}}'
    assert "RESIDE_POLICY" not in environment(rendered(subject, CLUSTER), key)


def test_a_job_has_few_retries_and_no_restarts_in_place() -> None:
    job = rendered(replica("unknown", kind="oneshot"), CLUSTER, serving=())["Job/greeter-1"]
    assert job["spec"]["backoffLimit"] <= 3
    assert job["spec"]["template"]["spec"]["restartPolicy"] == "Never"
    assert job["spec"]["suspend"] is False


def test_a_job_stays_as_it_was_rendered_when_a_setting_changes() -> None:
    before = rendered(replica("running", kind="oneshot"), CLUSTER)
    after = rendered(replica("running", kind="oneshot"), DOMAIN, rendered=before)
    assert after["Job/greeter-1"] == before["Job/greeter-1"]


def test_a_completed_job_stays_but_is_not_rendered_again() -> None:
    done = replica("completed", kind="oneshot")
    before = rendered(replica("running", kind="oneshot"), CLUSTER)
    assert rendered(done, CLUSTER, rendered=before)["Job/greeter-1"] == before["Job/greeter-1"]
    assert "Job/greeter-1" not in rendered(done, CLUSTER)


def test_a_disabled_job_is_suspended() -> None:
    before = rendered(replica("running", kind="oneshot"), CLUSTER)
    off = replica("running", kind="oneshot", management=Management(enabled=False))
    assert rendered(off, CLUSTER, rendered=before)["Job/greeter-1"]["spec"]["suspend"] is True
