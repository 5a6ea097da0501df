"""What an upgrade changes in the platform's objects, as a real API server computes it; nothing is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from reside.access.client import connect
from reside.access.target import Target
from reside.model.applied import as_applied
from reside.model.constants import FIELD_MANAGER
from reside.model.kinds import BY_KIND
from reside.seed import kubernetes, platform, release, settings
from reside.seed.teardown import resource_class

if TYPE_CHECKING:
    from reside.local import ClusterInfo

pytestmark = pytest.mark.anyio
NAMES = ("alpha", "kubernetes-sentinel", "seed", "jazz", "etcd")


def wanted(target: Target, **members: Any) -> settings.BootstrapSettings:
    """Return the settings of a cluster there."""
    images = {name: f"registry.reside.internal/reside/{name}@sha256:{'a' * 64}" for name in NAMES}
    images |= members.pop("images", {})
    return settings.parse({"namespace": target.namespace, "images": images, **members}, "test")


async def test_only_what_differs_is_shown_and_the_storage_tells_its_settings(cluster: ClusterInfo) -> None:
    target = Target("upgrade-plan", "direct", str(cluster.kubeconfig), cluster.context, 20.0)
    before = wanted(target, storage_size="2Gi", jazz_mode="open")
    jazz = {"jazz": f"registry.reside.internal/reside/jazz@sha256:{'b' * 64}"}
    async with connect(target) as client:
        await kubernetes.ensure_namespace(client, target.namespace)
        for document in platform.platform_stack(before, ""):
            body = resource_class(BY_KIND[document["kind"]]).from_dict(as_applied(document, target.namespace))
            await client.apply(body, field_manager=FIELD_MANAGER, force=True)
        assert await release.storage_settings(client) == {"storage_size": "2Gi", "jazz_mode": "open"}
        assert (await release.storage_images(client))["jazz"] == before.images.jazz
        assert await release.changed_objects(client, before) == {}
        after = wanted(target, storage_size="2Gi", jazz_mode="open", images=jazz, network_policies="ingress")
        for _ in range(2):
            found = await release.changed_objects(client, after)
            assert set(found) == {"StatefulSet/jazz", "NetworkPolicy/jazz", "NetworkPolicy/etcd"}
        assert found["NetworkPolicy/jazz"] == ["is created"]
        (line,) = found["StatefulSet/jazz"]
        assert line.startswith("spec.template.spec.containers[name=jazz].image: ")
        assert " → " in line
