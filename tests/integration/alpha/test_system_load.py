"""The system loads itself: seed, Sentinel and Alpha get fixed ids and keep their accounts and control blocks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from support.alpha_cluster import HOST, alpha_cluster
from support.eventually import eventually
from support.registry import registry

from reside.alpha import bootstrap
from reside.alpha.finished_requests import all_requests
from reside.alpha.granting.control_blocks import opened
from reside.model import constants
from reside.model.errors import Conflict, LoadRefused

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from support.alpha_cluster import AlphaCluster, Client, Servers

pytestmark = pytest.mark.anyio


@pytest.fixture(params=[None, f"{HOST}/acme"], ids=["names of code", "repository of its own"])
async def cluster(servers: Servers, request: pytest.FixtureRequest) -> AsyncIterator[AlphaCluster]:
    """Yield an Alpha in a cluster without and with an identity repository of its own."""
    async with alpha_cluster(servers, repository=request.param) as made:
        yield made


async def push_system(servers: Servers, variant: str = "") -> list[str]:
    """Push the three images with the manifests of the real ones; return them by digest in loading order."""
    found = []
    for name, identity, manifest in system_manifests():
        path = identity.removeprefix(f"{constants.RESIDE_REGISTRY}/")
        shown = {"displayInfo": {"en": {"title": f"{name}{variant}"}}}
        digest = await servers.push(f"{path}:{variant or 'v1'}", **manifest | shown)
        found.append(f"{identity}@{digest}")
    return found


def system_manifests() -> list[tuple[str, str, dict[str, object]]]:
    root = Path(__file__).parents[3] / "images"
    names = (constants.SEED_NAME, constants.SENTINEL_NAME, constants.ALPHA_NAME)
    manifests = [yaml.safe_load((root / name / "manifest.yaml").read_text()) for name in names]
    return [(m["info"]["name"], m["identity"], m) for m in manifests]


async def test_the_system_loads_itself_with_fixed_ids_and_existing_accounts(
    cluster: AlphaCluster, servers: Servers
) -> None:
    images = await push_system(servers)
    await bootstrap.load_system(cluster.alpha, images)
    assert await cluster.names() == {0: "seed", 1: "alpha", 2: "kubernetes-sentinel"}
    alpha, sentinel = await cluster.replica("alpha"), await cluster.replica("kubernetes-sentinel")
    assert (alpha.account, alpha.control_block) == (cluster.credentials.account_id, cluster.blocks.alpha)
    assert sentinel.control_block == cluster.blocks.sentinel
    await cluster.has_status("seed", "completed")
    await cluster.has_status("alpha", "running")
    await cluster.has_status("kubernetes-sentinel", "running")
    assert "seed" not in cluster.orders.seen
    async with opened(cluster.alpha.node, cluster.blocks.sentinel) as block:
        await eventually("settled permissions", block.permissions, lambda found: all(p.settled for p in found))
        assert all(p.expected.granted for p in block.permissions())
        assert {p.ref.account for p in block.permissions()} == {alpha.account}


async def test_loading_the_system_again_changes_nothing_and_another_image_creates_a_version(
    cluster: AlphaCluster, servers: Servers
) -> None:
    images = await push_system(servers)
    await bootstrap.load_system(cluster.alpha, images)
    await bootstrap.load_system(cluster.alpha, images)
    assert len(await all_requests(cluster.alpha.data)) == 3
    await cluster.has_status("alpha", "running")
    newer = await push_system(servers, "newer")
    await bootstrap.load_system(cluster.alpha, newer[2:])
    await cluster.has_status("alpha", "stopped", "running")
    await bootstrap.load_system(cluster.alpha, images[2:])
    await cluster.has_status("alpha", "stopped", "stopped", "running")


async def test_alpha_finds_the_sentinel_again_after_its_control_block_named_none(
    cluster: AlphaCluster, servers: Servers
) -> None:
    """Somebody with `rcb:manage:all` can write the requirements of Alpha's block; a new leader writes what is due."""
    await bootstrap.load_system(cluster.alpha, await push_system(servers))
    await cluster.has_status("alpha", "running")
    await cluster.stop_leading()
    block = cluster.alpha.context.rcb
    due = block.requirements()
    assert any(cluster.sentinel_credentials.account_id in accounts for accounts in due.values())
    block.set_requirements({})
    await cluster.alpha.node.flush()
    cluster.lead()
    await eventually("the requirements", block.requirements, lambda found: found == due)


async def test_parts_of_the_platform_can_not_be_disabled(
    cluster: AlphaCluster, servers: Servers, admin: Client
) -> None:
    await bootstrap.load_system(cluster.alpha, await push_system(servers))
    with pytest.raises(Conflict, match="replica alpha is a part of ReSide and can't be disabled"):
        await admin.call("disable-replica", {"replica": constants.ALPHA_ID})


async def test_a_refused_load_is_retried_by_the_next_run(
    cluster: AlphaCluster, servers: Servers, tmp_path: Path
) -> None:
    with registry(tmp_path) as elsewhere:
        images = await push_system(replace(servers, registry=elsewhere), "late")
    for _ in range(2):
        with pytest.raises(LoadRefused, match=r"seed@sha256.* can't be loaded"):
            await bootstrap.load_system(cluster.alpha, images[:1])
    assert await push_system(servers, "late") == images
    await bootstrap.load_system(cluster.alpha, images[:1])
    requests = [record.value.status for record in await all_requests(cluster.alpha.data)]
    assert requests == ["invalid", "invalid", "approved"]


async def test_preparing_twice_creates_nothing_the_second_time(cluster: AlphaCluster, servers: Servers) -> None:
    accounts, repository = (cluster.credentials, cluster.sentinel_credentials), cluster.alpha.cluster.image_repository
    again = await bootstrap.prepare(servers.jazz.url, (servers.etcd.url,), *accounts, repository)
    assert again == cluster.blocks
    assert len(cluster.alpha.data.blocks.as_list()) == 2


async def test_a_stack_of_alphas_own_reaches_the_sentinel(cluster: AlphaCluster) -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "jazz"}, "spec": {}}
    await bootstrap.declare_stack(cluster.alpha, constants.PLATFORM_STACK, [service])
    await eventually("the platform's stack", lambda: cluster.orders.seen, lambda seen: constants.PLATFORM_STACK in seen)
