"""What a deletion removes beside the Sentinel's objects, and where a restore does not begin; by a real API server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import ConfigMap, Secret
from lightkube.resources.networking_v1 import Ingress

from reside.access.client import connect
from reside.access.target import Target
from reside.cli import registry_login
from reside.model.constants import FIELD_MANAGER, MANAGED_BY_LABEL, REGISTRY_SECRET, RESTORE_MARKER
from reside.model.errors import InvalidInput
from reside.seed import kubernetes, leftovers
from reside.seed.backups import restoring
from reside.seed.backups.archive import Manifest
from reside.seed.teardown import managed, tear_down

if TYPE_CHECKING:
    import lightkube

    from reside.local import ClusterInfo

pytestmark = pytest.mark.anyio
OURS = {MANAGED_BY_LABEL: FIELD_MANAGER}
BACKUP = Manifest("4f", "2026-01-02T03:04:05+00:00", "reside", "co_zAlpha")


@pytest.fixture
async def target(cluster: ClusterInfo, request: pytest.FixtureRequest) -> Target:
    """Return a namespace of the test's own."""
    name = request.node.name.replace("_", "-")[:60].rstrip("-")
    found = Target(name, "direct", str(cluster.kubeconfig), cluster.context, 20.0)
    async with connect(found) as client:
        await kubernetes.ensure_namespace(client, name)
    return found


async def secrets(client: lightkube.AsyncClient) -> set[str]:
    """Return the names of all Secrets."""
    return {str(found.metadata.name) async for found in client.list(Secret) if found.metadata}


async def test_credentials_that_the_command_wrote_are_deleted(target: Target) -> None:
    await registry_login.store_login(target, '{"auths": {}}')
    async with connect(target) as client:
        assert await leftovers.present(client) == [f"Secret/{REGISTRY_SECRET}"]
        for _ in range(2):
            await leftovers.delete(client)
        assert await secrets(client) == set()


async def test_credentials_that_somebody_created_stay(target: Target) -> None:
    made = Secret(metadata=ObjectMeta(name=REGISTRY_SECRET), type="kubernetes.io/dockerconfigjson")
    made.stringData = {".dockerconfigjson": '{"auths": {}}'}
    async with connect(target) as client:
        await client.create(made, field_manager="kubectl-create")
        await registry_login.store_login(target, '{"auths": {}}')
        assert await leftovers.present(client) == []
        await leftovers.delete(client)
        assert await secrets(client) == {REGISTRY_SECRET}


async def test_certificates_of_the_clusters_ingresses_are_deleted(target: Target) -> None:
    async with connect(target) as client:
        for name, annotated in (("jazz-tls", "jazz-tls"), ("own-tls", None), ("other-tls", "other-tls")):
            annotations = {"cert-manager.io/certificate-name": annotated} if annotated else None
            await client.create(Secret(metadata=ObjectMeta(name=name, annotations=annotations)))
        for name, labels in (("jazz", OURS), ("own", OURS), ("other", {})):
            spec = {
                "tls": [{"hosts": ["a.example.test"], "secretName": f"{name}-tls"}],
                "defaultBackend": {"service": {"name": name, "port": {"number": 80}}},
            }
            metadata = {"name": name, "labels": labels}
            body: Any = Ingress.from_dict({"metadata": metadata, "spec": spec})
            await client.create(body)
        await tear_down(client, target.namespace, "kubernetes-sentinel", 20)
        assert await secrets(client) == {"own-tls", "other-tls"}
        assert await managed(client) == []


async def test_a_restore_begins_only_in_an_empty_namespace(target: Target) -> None:
    async with connect(target) as client:
        await client.create(ConfigMap(metadata=ObjectMeta(name="theirs")))
        with pytest.raises(InvalidInput, match="is not empty, it has ConfigMap/theirs: remove the cluster there"):
            await restoring._begin(client, BACKUP)


async def test_a_restore_is_continued_by_the_same_backup_only(target: Target) -> None:
    async with connect(target) as client:
        assert not any([(await restoring._begin(client, BACKUP)).is_complete for _ in range(2)])
        await client.create(Secret(metadata=ObjectMeta(name="alpha")))
        other = Manifest("5e", BACKUP.created, BACKUP.namespace, BACKUP.alpha)
        with pytest.raises(InvalidInput, match="has the unfinished restore of another backup: restore that one"):
            await restoring._begin(client, other)
        await client.patch(ConfigMap, RESTORE_MARKER, {"data": {"volumes": "complete"}})
        assert (await restoring._begin(client, BACKUP)).is_complete
        assert await leftovers.present(client) == ["Secret/alpha", f"ConfigMap/{RESTORE_MARKER}"]
        await leftovers.delete(client)
        assert await restoring.present(client) == []
