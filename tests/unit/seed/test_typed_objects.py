"""The bootstrap declares its objects as Pulumi's typed resources, with what `reside.seed.platform` defines."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pulumi
import pytest
from pulumi.runtime import mocks

from reside.model.applied import APPLY_ANNOTATIONS, token
from reside.seed import platform, settings
from stacks.bootstrap.cluster import KINDS, Cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

DIGEST = "sha256:" + "c" * 64
SETTINGS = settings.parse(
    {
        "namespace": "ns",
        "storage_class": "fast",
        "images": {
            name: f"registry.reside.internal/reside/{name}@{DIGEST}"
            for name in ("alpha", "kubernetes-sentinel", "seed", "jazz", "etcd")
        },
    },
    "test",
)
DEFINITIONS = [
    *platform.storage(SETTINGS),
    platform.sentinel_volume(SETTINGS),
    *platform.sentinel_access(SETTINGS.namespace),
]


class Recorded(mocks.Mocks):
    """What Pulumi's engine would receive."""

    def __init__(self) -> None:
        self.resources: list[mocks.MockResourceArgs] = []

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str | None, dict[str, Any]]:
        """Record a resource; its outputs are its inputs."""
        self.resources.append(args)
        return f"{args.name}-id", args.inputs

    def call(self, _args: mocks.MockCallArgs) -> dict[str, Any]:
        """Answer an invoke, of which there is none."""
        return {}


@pytest.fixture
def recorded() -> Iterator[Recorded]:
    found = Recorded()
    loop = asyncio.new_event_loop()  # Pulumi takes the thread's loop
    asyncio.set_event_loop(loop)
    mocks.set_mocks(found, project="reside", stack="test")
    yield found
    pulumi.runtime.settings.reset_options()
    asyncio.set_event_loop(None)
    loop.close()


def test_each_object_reaches_the_engine_as_it_is_defined(recorded: Recorded) -> None:
    @pulumi.runtime.test
    def declare() -> None:
        cluster = Cluster(SETTINGS)
        parent = pulumi.ComponentResource("test:index:Parent", "parent")
        for definition in DEFINITIONS:
            cluster.object(definition, parent)

    declare()
    declared = {resource.name: resource for resource in recorded.resources if resource.typ.startswith("kubernetes:")}
    assert len(declared) == len(DEFINITIONS)
    for definition in DEFINITIONS:
        resource = declared[f"{definition['kind']}-{definition['metadata']['name']}".lower()]
        metadata = definition["metadata"]
        annotations = {**metadata.get("annotations", {}), **APPLY_ANNOTATIONS}
        assert resource.typ == token(definition)
        assert resource.inputs == {**definition, "metadata": {**metadata, "annotations": annotations}}


def test_a_type_is_known_for_each_kind_and_none_is_left_over() -> None:
    assert set(KINDS) == {definition["kind"] for definition in DEFINITIONS}


def test_the_provider_applies_changes_of_secrets_and_configmaps_in_place(recorded: Recorded) -> None:
    pulumi.runtime.test(lambda: Cluster(SETTINGS) and None)()
    (provider,) = (resource for resource in recorded.resources if resource.typ == "pulumi:providers:kubernetes")
    assert provider.inputs == {
        "namespace": "ns",
        "enableConfigMapMutable": "true",
        "enableSecretMutable": "true",
    }
