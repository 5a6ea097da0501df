"""Alpha's settings: a domain needs an issuer; mirrors may omit the scheme; the claim code is masked."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError
from support.registry import authority
from unit.alpha.entities import OWNER, replica

from reside.alpha.settings import AlphaSettings
from reside.alpha.stacks.render import render
from reside.alpha.stacks.system import cluster_env
from reside.model.cluster import ClusterSettings

BASE: dict[str, str] = {
    "RESIDE_REPLICA_NAME": "alpha",
    "RESIDE_CONTROL_BLOCK_ID": "co_zBlock",
    "RESIDE_ACCOUNT_ID": "co_zAlpha",
    "RESIDE_AGENT_SECRET": "sealerSecret_z/signerSecret_z",
    "RESIDE_SYNC_SERVER_URL": "ws://forwarded:1",
    "RESIDE_ETCD_HOSTS": "http://forwarded:2",
    "RESIDE_NAMESPACE": "reside",
}


def read(monkeypatch: pytest.MonkeyPatch, **more: str) -> AlphaSettings:
    for name, value in (BASE | more).items():
        monkeypatch.setenv(name, value)
    kwargs: dict[str, Any] = {}
    return AlphaSettings(**kwargs)


def test_mirrors_are_json_and_plain_http_without_a_scheme(monkeypatch: pytest.MonkeyPatch) -> None:
    found = read(monkeypatch, RESIDE_REGISTRY_MIRRORS='{"a": "10.0.0.1:5000", "b": "https://b"}')
    assert found.registry_mirrors == {"a": "http://10.0.0.1:5000", "b": "https://b"}


@pytest.mark.parametrize("name", ["RESIDE_DOMAIN", "RESIDE_CLUSTER_ISSUER"])
def test_a_domain_needs_an_issuer_and_an_issuer_a_domain(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    with pytest.raises(ValidationError, match="set both"):
        read(monkeypatch, **{name: "example.org"})


def test_what_is_rendered_names_the_addresses_inside_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """The seed reaches Jazz and etcd through forwarded addresses; the pods that it renders do not."""
    cluster = read(monkeypatch, RESIDE_DOMAIN="example.org", RESIDE_CLUSTER_ISSUER="le").cluster()
    assert type(cluster) is ClusterSettings
    assert cluster.external_url == "https://example.org"
    (deployment,) = [o for o in render(replica("unknown"), cluster, owner=OWNER).objects if o["kind"] == "Deployment"]
    env = {e["name"]: e.get("value") for e in deployment["spec"]["template"]["spec"]["containers"][0]["env"]}
    assert (env["RESIDE_SYNC_SERVER_URL"], env["RESIDE_ETCD_HOSTS"]) == ("ws://jazz:4200", "http://etcd:2379")


def test_alpha_reads_from_its_pod_what_the_bootstrap_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every setting of the cluster is rendered, and parsed to the same value."""
    cluster = ClusterSettings(
        namespace="reside",
        domain="example.org",
        cluster_issuer="letsencrypt",
        state_backend="s3://states/reside?region=x",
        secrets_provider="awskms://alias/reside",
        default_placement_group="shared",
        registry_mirrors={"registry.reside.internal": "10.0.0.1:5000"},
        image_repository="ghcr.io/acme/reside",
        registry_authorities={"ghcr.io": authority()},
        registry_credentials=True,
        allowed_registries=("registry.reside.internal", "ghcr.io"),
        request_expiry_hours=2.5,
        request_history=25,
        traces_endpoint="http://collector:4318",
        network_policies="full",
        ingress_namespace="ingress-nginx",
        ingress_class="nginx",
        ingress_annotations={"nginx.ingress.kubernetes.io/proxy-read-timeout": "3600"},
        policy={"levels": {"read-only-root": "mandatory"}},
    )
    assert all(getattr(cluster, member) for member in ClusterSettings.model_fields if member != "gateway")
    assert list(cluster_env(cluster)) == [
        "RESIDE_DOMAIN",
        "RESIDE_CLUSTER_ISSUER",
        "RESIDE_DEFAULT_PLACEMENT_GROUP",
        "RESIDE_REGISTRY_MIRRORS",
        "RESIDE_IMAGE_REPOSITORY",
        "RESIDE_REGISTRY_AUTHORITIES",
        "RESIDE_REGISTRY_CREDENTIALS",
        "RESIDE_ALLOWED_REGISTRIES",
        "RESIDE_REQUEST_EXPIRY_HOURS",
        "RESIDE_REQUEST_HISTORY",
        "RESIDE_TRACES_ENDPOINT",
        "RESIDE_NETWORK_POLICIES",
        "RESIDE_INGRESS_NAMESPACE",
        "RESIDE_INGRESS_CLASS",
        "RESIDE_INGRESS_ANNOTATIONS",
        "RESIDE_STATE_BACKEND",
        "RESIDE_SECRETS_PROVIDER",
        "RESIDE_POLICY",
    ]
    assert read(monkeypatch, **cluster_env(cluster)).cluster() == cluster


def test_secrets_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    found = read(monkeypatch, RESIDE_CLAIM_CODE="very-secret")
    assert "very-secret" not in repr(found)
    assert "sealerSecret" not in repr(found)
