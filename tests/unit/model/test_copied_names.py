"""Names that cannot be imported where they are used: each copy equals the model's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from unit.alpha.entities import CLUSTER, OWNER, replica

from reside.alpha.settings import AlphaSettings
from reside.alpha.stacks.render import render
from reside.build.source import MIRRORS_VARIABLE
from reside.local.layout import REGISTRY_HOST
from reside.model import constants
from reside.policy import context, network_rules, rules, yielded_fields
from reside.policy.context import PLATFORM_NAMES
from reside.replica.settings import ReplicaSettings
from reside.sentinel.settings import SentinelSettings

ROOT = Path(__file__).parents[3]


def text(path: str) -> str:
    return (ROOT / path).read_text()


@pytest.mark.parametrize("image", ["python", "jazz", "etcd"])
def test_images_run_as_the_user_that_owns_the_volumes(image: str) -> None:
    user = f"{constants.NONROOT_USER}:{constants.NONROOT_USER}"
    dockerfile = text(f"images/{image}/Dockerfile")
    assert re.findall(r"^USER (.*)$", dockerfile, re.MULTILINE) == [user]
    assert set(re.findall(r"--chown=(\S+)", dockerfile)) == {user}


def test_the_image_contains_the_folder_of_the_sentinels_volume() -> None:
    assert f" {constants.SENTINEL_STATE_DIR}/\n" in text("images/python/Dockerfile")


def test_jazz_listens_on_its_port() -> None:
    assert re.findall(r"\bPORT=(\d+)", text("images/jazz/Dockerfile")) == [str(constants.JAZZ_PORT)]
    assert re.findall(r'PORT \?\? "(\d+)"', text("images/jazz/settings.mjs")) == [str(constants.JAZZ_PORT)]


def test_the_embedded_cluster_serves_the_platforms_registry() -> None:
    assert REGISTRY_HOST == constants.RESIDE_REGISTRY


def test_the_policy_knows_the_label_of_managed_objects() -> None:
    assert rules.MANAGED_BY_LABEL == constants.MANAGED_BY_LABEL
    assert network_rules.DOMAIN_CERTIFICATE == constants.DOMAIN_CERTIFICATE
    assert yielded_fields.YIELD_ANNOTATION == constants.YIELD_ANNOTATION
    assert rules.Context(namespace=None).manager == constants.FIELD_MANAGER


def test_the_policy_knows_the_names_of_the_platform() -> None:
    named = {constants.JAZZ_NAME, constants.ETCD_NAME, constants.ALPHA_NAME, constants.SENTINEL_NAME}
    named |= {constants.CLAIM_SECRET, constants.ENGINE_SECRET, constants.PLATFORM_STACK, constants.SEED_NAME}
    named |= {constants.SENTINEL_EVENTS_ROLE, constants.STORE_SECRET, constants.CLUSTER_RECORD}
    named |= {constants.REGISTRY_SECRET, constants.SENTINEL_LOGS_ROLE, constants.SENTINEL_ROUTES_ROLE}
    assert named | {constants.TEARDOWN_MARKER.partition("/")[2], "kubernetes"} == PLATFORM_NAMES
    assert context.PLATFORM_STACK == constants.PLATFORM_STACK


def test_the_built_provider_has_the_version_that_programs_require() -> None:
    (version,) = re.findall(r'provider\.Serve\("kubernetes", "([^"]+)"', text("tools/pulumi-kubernetes/main.go"))
    assert version == constants.PROVIDER_VERSION


def test_builds_before_and_after_installation_share_one_cache() -> None:
    (variable,) = set(re.findall(r"RESIDE_CACHE\w*", text("reside/build/cache.py")))
    for path in ("tools/builder/cache.py", "Makefile"):
        assert set(re.findall(r"RESIDE_CACHE\w*", text(path))) == {variable}


@pytest.mark.parametrize(
    ("identity", "settings"),
    [
        ("registry.reside.internal/reside/examples/greeter", ReplicaSettings),
        (constants.ALPHA_IDENTITY, AlphaSettings),
        (constants.SENTINEL_IDENTITY, SentinelSettings),
    ],
)
def test_pods_get_the_variables_that_the_settings_read(identity: str, settings: type[ReplicaSettings]) -> None:
    whole = {"domain": "example.org", "cluster_issuer": "letsencrypt", "default_placement_group": "shared"}
    cluster = CLUSTER.model_copy(update={**whole, "registry_mirrors": {"a": "http://b"}, "allowed_registries": ("a",)})
    (deployment,) = [
        o
        for o in render(replica("unknown", identity=identity), cluster, owner=OWNER).objects
        if o["kind"] == "Deployment"
    ]
    rendered = {e["name"] for e in deployment["spec"]["template"]["spec"]["containers"][0]["env"]}
    read = {f"{constants.ENV_PREFIX}{member.upper()}" for member in settings.model_fields}
    needed = {f"{constants.ENV_PREFIX}{m.upper()}" for m, field in settings.model_fields.items() if field.is_required()}
    assert needed <= rendered <= read | {"DOCKER_CONFIG"}


def test_the_command_line_reads_mirrors_from_the_variable_of_alphas_pod() -> None:
    assert f"{constants.ENV_PREFIX}REGISTRY_MIRRORS" == MIRRORS_VARIABLE
