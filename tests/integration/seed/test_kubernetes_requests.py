"""The requests of the bootstrap to the Kubernetes API, with a real control plane."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from lightkube.models.core_v1 import (
    Container,
    ContainerState,
    ContainerStateWaiting,
    ContainerStatus,
    PodCondition,
    PodSpec,
    PodStatus,
)
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import ConfigMap, Event, Pod, Secret, ServiceAccount
from lightkube.types import PatchType

from reside.access.client import connect
from reside.access.objects import read_secret
from reside.access.target import Target
from reside.cli import registry_login
from reside.model.constants import CLAIM_SECRET, ENGINE_SECRET, FIELD_MANAGER, MANAGED_BY_LABEL, REPLICA_LABEL
from reside.model.errors import InvalidInput, NotReady
from reside.seed import accounts, kubernetes, leftovers, outcome, platform, recording, running, settings
from reside.seed.teardown import tear_down

if TYPE_CHECKING:
    import lightkube

    from reside.local import ClusterInfo

pytestmark = pytest.mark.anyio
OURS = {MANAGED_BY_LABEL: FIELD_MANAGER}


@pytest.fixture
async def target(cluster: ClusterInfo, request: pytest.FixtureRequest) -> Target:
    """Return a namespace of the test's own."""
    name = request.node.name.replace("_", "-")[:60].rstrip("-")
    found = Target(name, "direct", str(cluster.kubeconfig), cluster.context, 20.0)
    async with connect(found) as client:
        for _ in range(2):
            await kubernetes.ensure_namespace(client, name)
    return found


async def names(client: lightkube.AsyncClient, kind: type[ConfigMap | Secret]) -> set[str]:
    return {str(found.metadata.name) async for found in client.list(kind) if found.metadata}


async def test_identities_are_created_once(target: Target) -> None:
    first = await accounts.ensure_identities(target)
    again = await accounts.ensure_identities(target)
    assert again == first
    assert await accounts.read_identities(target) == first
    assert first.alpha.account_id != first.sentinel.account_id


async def test_secrets_have_the_keys_that_pods_read(target: Target) -> None:
    await accounts.ensure_identities(target)
    async with connect(target) as client:
        for name in ("alpha", "kubernetes-sentinel"):
            assert set(await read_secret(client, name) or {}) == {"accountId", "agentSecret"}
        assert set(await read_secret(client, ENGINE_SECRET) or {}) == {"passphrase"}
        assert set(await read_secret(client, CLAIM_SECRET) or {}) == {"code"}


async def test_an_interrupted_phase_keeps_what_it_created(target: Target) -> None:
    async with connect(target) as client:
        made = platform.secret("alpha", target.namespace, {"accountId": "x", "agentSecret": "kept"})
        assert await kubernetes.ensure_secret(client, made) == {"accountId": "x", "agentSecret": "kept"}
        other = platform.secret("alpha", target.namespace, {"accountId": "y", "agentSecret": "lost"})
        assert (await kubernetes.ensure_secret(client, other))["agentSecret"] == "kept"


async def test_missing_identities_are_named(target: Target) -> None:
    with pytest.raises(NotReady, match="Secret alpha is missing"):
        await accounts.read_identities(target)


async def test_forgetting_deletes_the_secrets_and_may_be_repeated(target: Target) -> None:
    await accounts.ensure_identities(target)
    async with connect(target) as client:
        for _ in range(2):
            await leftovers.delete(client)
        assert await names(client, Secret) == set()


async def test_a_sweep_deletes_all_our_objects_and_nothing_else(target: Target) -> None:
    async with connect(target) as client:
        for name, labels in (("ours", OURS), ("theirs", {})):
            await client.create(ConfigMap(metadata=ObjectMeta(name=name, labels=dict(labels))))
        await client.create(ServiceAccount(metadata=ObjectMeta(name="ours", labels=dict(OURS))))
        await tear_down(client, target.namespace, "kubernetes-sentinel", 20)
        assert await names(client, ConfigMap) - {"kube-root-ca.crt"} == {"theirs"}
        await tear_down(client, target.namespace, "kubernetes-sentinel", 20)


async def test_a_timeout_of_readiness_names_what_is_missing(target: Target) -> None:
    async with connect(target) as client:
        with pytest.raises(NotReady, match=r"readiness of jazz was not reached .*no StatefulSet jazz"):
            await kubernetes.wait_for_stateful_set(client, "jazz", 0.5)
        with pytest.raises(NotReady, match="no pod of alpha is ready"):
            await kubernetes.wait_for_replica(client, "alpha", 0.5)


async def test_a_replica_is_ready_once_a_pod_with_its_label_is(target: Target) -> None:
    """Without a kubelet, the test writes the readiness."""
    spec = PodSpec(containers=[Container(name="main", image="example.internal/alpha:v1")])
    ready = PodStatus(conditions=[PodCondition(type="Ready", status="True")])
    async with connect(target) as client:
        for name in ("alpha", "greeter"):
            metadata = ObjectMeta(name=name, labels={REPLICA_LABEL: name})
            await client.create(Pod(metadata=metadata, spec=spec))
        await client.patch(Pod.Status, "greeter", Pod(status=ready), patch_type=PatchType.MERGE)
        await kubernetes.wait_for_replica(client, "greeter", 20)
        waiting = ContainerState(waiting=ContainerStateWaiting(reason="ImagePullBackOff"))
        container = ContainerStatus("example.internal/alpha:v1", "", "main", ready=False, restartCount=0, state=waiting)
        failing = PodStatus(containerStatuses=[container])
        await client.patch(Pod.Status, "alpha", Pod(status=failing), patch_type=PatchType.MERGE)
        with pytest.raises(NotReady, match=r"no pod of alpha is ready \(alpha: ImagePullBackOff, see"):
            await kubernetes.wait_for_replica(client, "alpha", 0.5)
        await client.patch(Pod.Status, "alpha", Pod(status=ready), patch_type=PatchType.MERGE)
        await kubernetes.wait_for_replica(client, "alpha", 20)


async def test_a_replica_has_started_once_its_startup_probe_has_succeeded(target: Target) -> None:
    """Without a kubelet, the test writes the status."""
    spec = PodSpec(containers=[Container(name="main", image="example.internal/alpha:v1")])
    async with connect(target) as client:
        await client.create(Pod(metadata=ObjectMeta(name="starting", labels={REPLICA_LABEL: "starting"}), spec=spec))
        for started in (None, False):
            container = ContainerStatus("example.internal/alpha:v1", "", "main", False, 0, started=started)
            status = PodStatus(containerStatuses=[container] if started is not None else [])
            await client.patch(Pod.Status, "starting", Pod(status=status), patch_type=PatchType.MERGE)
            with pytest.raises(NotReady, match="no pod of starting has started"):
                await kubernetes.wait_for_start(client, "starting", 0.5)
        container = ContainerStatus("example.internal/alpha:v1", "", "main", False, 0, started=True)
        status = PodStatus(containerStatuses=[container])
        await client.patch(Pod.Status, "starting", Pod(status=status), patch_type=PatchType.MERGE)
        await kubernetes.wait_for_start(client, "starting", 20)
        assert not await kubernetes.has_ready_pod(client, "starting")


async def test_an_invalid_kubeconfig_is_named(target: Target) -> None:
    for wrong, message in (
        (Target("ns", "direct", "/does/not/exist", None, 1), "/does/not/exist"),
        (Target("ns", "direct", target.kubeconfig, "nowhere", 1), "nowhere"),
    ):
        with pytest.raises(InvalidInput, match=message):
            async with connect(wrong):
                pass


async def record(target: Target) -> tuple[dict[str, str], list[tuple[str | None, str | None]]]:
    """Return the data of the record of the bootstrap, and the reasons and types of the events about it."""
    async with connect(target) as client:
        found = await client.get(ConfigMap, outcome.NAME)
        events = [(each.reason, each.type) async for each in client.list(Event)]
    return found.data or {}, sorted(events, key=str)


async def test_the_record_tells_each_phase_and_the_error_of_one(target: Target) -> None:
    found, start = bootstrap_settings(target), outcome.timestamp()
    await asyncio.to_thread(recording.begin, found, "storage", is_first=True)
    await asyncio.to_thread(recording.end, found, "storage")

    def fail() -> None:
        with recording.recorded(found, "accounts"):
            raise NotReady("Jazz does not respond")

    with pytest.raises(NotReady, match="Jazz does not respond"):
        await asyncio.to_thread(fail)
    await asyncio.to_thread(recording.record_failure, target, None, "another", since=start)
    data, events = await record(target)
    assert (data["result"], data["error"], data["endpoint"]) == ("failed", "Jazz does not respond", "")
    assert [(each.name, each.result) for each in outcome.phases(data)] == [("storage", "done"), ("accounts", "failed")]
    started, done, failed = ("PhaseStarted", "Normal"), ("PhaseDone", "Normal"), ("BootstrapFailed", "Warning")
    assert events == [failed, done, started, started]


async def test_a_record_outlives_a_sweep_and_not_a_deletion(target: Target) -> None:
    found = bootstrap_settings(target)
    await asyncio.to_thread(recording.begin, found, "storage", is_first=True)
    await asyncio.to_thread(recording.record_account, found, "co_zAlpha")
    async with connect(target) as client:
        await tear_down(client, target.namespace, "kubernetes-sentinel", 20)
        assert (await record(target))[0]["alphaAccount"] == "co_zAlpha"
        for _ in range(2):
            await leftovers.delete(client)
        assert await names(client, ConfigMap) == {"kube-root-ca.crt"}


def bootstrap_settings(target: Target) -> settings.BootstrapSettings:
    """Return settings of a bootstrap of this namespace."""
    image = "registry.reside.internal/reside/x@sha256:" + "c" * 64
    images = dict.fromkeys(("alpha", "kubernetes-sentinel", "seed", "jazz", "etcd"), image)
    where = {"access": target.access, "kubeconfig": target.kubeconfig, "kube_context": target.kube_context}
    return settings.parse({"namespace": target.namespace, "images": images, **where}, "test")


async def test_the_seed_on_an_operators_machine_reads_registries_with_the_clusters_credentials(
    target: Target, tmp_path: Path
) -> None:
    found = bootstrap_settings(target).model_copy(update={"registry_credentials": True})
    with pytest.raises(InvalidInput, match="needs the Secret reside-registry"):
        await running.write_login(found, tmp_path / "registry")
    login = '{"auths": {"ghcr.io": {"auth": "cm9ib3Q6aHVudGVyMg=="}}}'
    await registry_login.store_login(target, login)
    folder = Path(await running.write_login(found, tmp_path / "registry"))
    assert (folder / "config.json").read_text() == login
    assert (folder / "config.json").stat().st_mode & 0o077 == 0
