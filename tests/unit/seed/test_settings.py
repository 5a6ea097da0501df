"""Settings of the bootstrap: validated when parsed, passed on as JSON, with clear errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.registry import authority

from reside.model.errors import InvalidInput
from reside.seed import settings

AUTHORITY = authority()
DIGEST = "sha256:" + "a" * 64
IMAGES = {
    name: f"registry.reside.internal/reside/{name}@{DIGEST}"
    for name in ("alpha", "kubernetes-sentinel", "seed", "jazz", "etcd")
}
DATA = {"namespace": "reside", "images": IMAGES}


def test_settings_round_trip_as_json() -> None:
    found = settings.parse({**DATA, "registry_mirrors": {"registry.reside.internal": "10.0.0.1:5000"}}, "test")
    assert settings.BootstrapSettings.from_json(found.to_json()) == found


@pytest.mark.parametrize("given", [{"domain": "example.org"}, {"cluster_issuer": "letsencrypt"}])
def test_a_domain_needs_an_issuer_and_the_other_way_round(given: dict[str, str]) -> None:
    with pytest.raises(InvalidInput, match="set both"):
        settings.parse({**DATA, **given}, "test")


def test_a_gateway_takes_the_place_of_ingresses_and_their_certificate() -> None:
    found = settings.parse({**DATA, "domain": "example.org", "gateway": "edge/public"}, "test")
    assert (found.gateway, found.external_url) == ("edge/public", "https://example.org")
    for given in (
        {"cluster_issuer": "ca", "domain": "a.test"},
        {"ingress_class": "a", "ingress_annotations": {"a": "b"}},
    ):
        with pytest.raises(InvalidInput, match="can't be combined with a gateway"):
            settings.parse({**DATA, "gateway": "edge/public", **given}, "test")
    for name in ("public", "edge/", "/public", "edge/public/https/more", "Edge/public"):
        with pytest.raises(InvalidInput, match="gateway"):
            settings.parse({**DATA, "gateway": name}, "test")


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"namespace": "Not A Name"}, "namespace"),
        ({"images": {**IMAGES, "jazz": "jazz:latest"}}, "images.jazz"),
        ({"jazz_mode": "closed"}, "jazz_mode"),
        ({"images": {k: v for k, v in IMAGES.items() if k != "etcd"}}, "images.etcd"),
        ({"nonsense": 1}, "nonsense"),
        ({"access": "telepathy"}, "access"),
    ],
)
def test_each_fault_is_named(change: dict[str, object], fault: str) -> None:
    with pytest.raises(InvalidInput, match=fault.replace(".", r"\.")):
        settings.parse({**DATA, **change}, "test")


@pytest.mark.parametrize(
    "repository",
    [
        "ghcr.io",
        "https://ghcr.io/acme",
        "ghcr.io/Acme",
        "ghcr.io/acme/",
        "ghcr.io/acme:v1",
        "acme/reside",
        "a.b/" + "c" * 200,
        "-a.b/x",
        ".:5/x",
    ],
)
def test_a_wrong_image_repository_is_refused_with_an_example(repository: str) -> None:
    with pytest.raises(InvalidInput, match=r"image_repository: .*such as ghcr\.io/acme/reside"):
        settings.parse({**DATA, "image_repository": repository}, "options")


def test_an_image_repository_below_the_names_of_identities_is_refused() -> None:
    with pytest.raises(InvalidInput, match="choose another path"):
        settings.parse({**DATA, "image_repository": "registry.reside.internal/reside/acme"}, "options")


@pytest.mark.parametrize(
    "repository", ["ghcr.io/acme/reside", "localhost:5000/a", "registry:5000/a/b-c", "10.0.0.1:80/a"]
)
def test_image_repositories_with_and_without_ports_are_taken(repository: str) -> None:
    found = settings.parse({**DATA, "image_repository": repository}, "options")
    assert found.located(f"registry.reside.internal/reside/etcd@{DIGEST}") == f"{repository}/etcd@{DIGEST}"
    assert found.located("registry.reside.internal/resident/a") == "registry.reside.internal/resident/a"


def test_a_private_key_beside_an_authority_is_left_out() -> None:
    key = "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n"
    found = settings.parse({**DATA, "registry_authorities": {"ghcr.io": key + AUTHORITY}}, "options")
    assert found.registry_authorities["ghcr.io"].strip() == AUTHORITY.strip()


def test_an_authority_that_is_not_pem_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"the authority of ghcr\.io is not a PEM document"):
        settings.parse({**DATA, "registry_authorities": {"ghcr.io": "ca.pem"}}, "options")


def test_settings_are_read_from_the_stack_and_the_images_file(tmp_path: Path) -> None:
    (tmp_path / "images.json").write_text(json.dumps({**IMAGES, "runtime": "ignored"}))
    config = {"namespace": "ns", "imagesFile": "images.json", "storageClass": "fast", "kubeContext": "there"}
    found = settings.from_stack(config.get, tmp_path)
    assert (found.namespace, found.storage_class, found.kube_context) == ("ns", "fast", "there")
    assert found.images.kubernetes_sentinel == IMAGES["kubernetes-sentinel"]


def test_the_documents_of_the_images_are_found_beside_their_digests(tmp_path: Path) -> None:
    file = tmp_path / "images.json"
    file.write_text(json.dumps(IMAGES))
    config = {"namespace": "ns", "imagesFile": "images.json"}
    assert settings.from_stack(config.get, tmp_path).image_documents is None
    file.with_name(settings.IMAGE_DOCUMENTS).write_text("{}")
    assert settings.from_stack(config.get, tmp_path).image_documents == str(tmp_path / settings.IMAGE_DOCUMENTS)


def test_every_setting_can_be_in_the_stack_under_its_name_in_camel_case(tmp_path: Path) -> None:
    (tmp_path / "images.json").write_text(json.dumps(IMAGES))
    config = {
        "imagesFile": "images.json",
        "namespace": "ns",
        "access": "direct",
        "kubeconfig": "/kubeconfig",
        "kubeContext": "there",
        "registryMirrors": '{"registry.reside.internal": "10.0.0.1:5000"}',
        "imageRepository": "ghcr.io/acme/reside",
        "registryAuthorities": json.dumps({"ghcr.io": AUTHORITY}),
        "registryCredentials": "true",
        "domain": "example.org",
        "clusterIssuer": "letsencrypt",
        "defaultPlacementGroup": "shared",
        "storageClass": "fast",
        "storageSize": "2Gi",
        "jazzMode": "open",
        "allowedRegistries": "ghcr.io, registry.example.org",
        "requestExpiryHours": "1.5",
        "requestHistory": "25",
        "tracesEndpoint": "http://collector:4318",
        "networkPolicies": "full",
        "ingressNamespace": "ingress-nginx",
        "ingressClass": "nginx",
        "ingressAnnotations": '{"nginx.ingress.kubernetes.io/proxy-read-timeout": "3600"}',
        "stateBackend": "s3://states/cluster?region=x",
        "secretsProvider": "awskms://alias/reside?region=x",
        "policy": '{"levels": {"read-only-root": "mandatory"}}',
        "imageDocuments": "/image-documents.json",
        "deadline": "60",
    }
    found = settings.from_stack(config.get, tmp_path)
    fields = {member: field for member, field in type(found).model_fields.items() if member != "gateway"}
    assert all(getattr(found, member) != field.default for member, field in fields.items())
    behind = {"imagesFile": "images.json", "namespace": "ns", "domain": "example.org", "gateway": "edge/public/https"}
    assert settings.from_stack(behind.get, tmp_path).gateway == "edge/public/https"
    assert (found.cluster_issuer, found.default_placement_group, found.deadline) == ("letsencrypt", "shared", 60)
    assert found.registry_mirrors == {"registry.reside.internal": "http://10.0.0.1:5000"}
    assert found.allowed_registries == ("ghcr.io", "registry.example.org")
    assert (found.request_expiry_hours, found.request_history) == (1.5, 25)


def test_missing_images_say_how_to_get_them(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="make up"):
        settings.from_stack({"namespace": "ns"}.get, tmp_path)


@pytest.mark.parametrize("member", ["registryMirrors", "registryAuthorities", "ingressAnnotations", "policy"])
def test_mirrors_or_a_policy_that_are_not_json_are_named(tmp_path: Path, member: str) -> None:
    (tmp_path / "images.json").write_text(json.dumps(IMAGES))
    config = {"namespace": "ns", "imagesFile": "images.json", member: "host=address"}
    with pytest.raises(InvalidInput, match=f"{member} is not JSON"):
        settings.from_stack(config.get, tmp_path)


def test_a_wrong_policy_is_refused_before_anything_is_created() -> None:
    with pytest.raises(InvalidInput, match="allowed-kinds is always mandatory"):
        settings.parse(DATA | {"policy": {"levels": {"allowed-kinds": "advisory"}}}, "options")


def test_a_missing_settings_file_is_named() -> None:
    with pytest.raises(InvalidInput, match="/nowhere can't be read: No such file"):
        settings.from_environment({settings.SETTINGS_FILE_VARIABLE: "/nowhere"})


def test_a_local_cluster_that_was_never_started_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESIDE_LOCAL_STATE", str(tmp_path))
    with pytest.raises(InvalidInput, match="'default' does not exist"):
        settings.local_cluster("default")


def test_the_environment_has_precedence_by_value_then_by_file(tmp_path: Path) -> None:
    by_value, by_file = settings.parse(DATA, "a"), settings.parse({**DATA, "namespace": "other"}, "b")
    file = tmp_path / "settings.json"
    file.write_text(by_file.to_json())
    environment = {settings.SETTINGS_FILE_VARIABLE: str(file)}
    assert settings.from_environment(environment) == by_file
    assert settings.from_environment({**environment, settings.SETTINGS_VARIABLE: by_value.to_json()}) == by_value
    assert settings.from_environment({}) is None


def test_the_committed_stack_has_no_digest_and_no_salt() -> None:
    text = (Path(__file__).parents[3] / "stacks/Pulumi.local.yaml").read_text()
    assert "sha256" not in text
    assert "encryptionsalt" not in text


def test_a_setting_of_the_environment_goes_before_that_of_the_stack(tmp_path: Path) -> None:
    (tmp_path / "images.json").write_text(json.dumps(IMAGES))
    config = {"imagesFile": "images.json", "namespace": "ns", "storageClass": "fast", "jazzMode": "open"}
    environment = {
        "RESIDE_BOOTSTRAP_STORAGE_CLASS": "slow",
        "RESIDE_BOOTSTRAP_POLICY": '{"levels": {"read-only-root": "mandatory"}}',
        "RESIDE_BOOTSTRAP_ALLOWED_REGISTRIES": "ghcr.io",
        "RESIDE_BOOTSTRAP_DOMAIN": "",
    }
    found = settings.from_stack(config.get, tmp_path, environment)
    assert (found.storage_class, found.jazz_mode, found.domain) == ("slow", "open", None)
    assert found.policy == {"levels": {"read-only-root": "mandatory"}}
    assert found.allowed_registries == ("ghcr.io",)


def test_a_variable_that_is_not_json_is_named() -> None:
    with pytest.raises(InvalidInput, match="RESIDE_BOOTSTRAP_POLICY is not JSON"):
        settings.members_of_environment({"RESIDE_BOOTSTRAP_POLICY": "levels"})
