"""Access to locks in etcd: each replica has a user for its own locks, and nobody but Alpha touches Alpha's."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest
from support.alpha_cluster import AlphaCluster, Client, Servers, alpha_cluster
from support.etcd import forget_users
from support.eventually import eventually

from reside.alpha.granting.control_blocks import opened
from reside.alpha.lock_access import user_of
from reside.jazz import Credentials, Node
from reside.locks import EtcdUnavailable, LockService, LockTimeout, UserRefused
from reside.locks.etcd import Etcd
from reside.model.alpha_contract import MANAGE_BLOCKS
from reside.model.constants import ALPHA_CONTRACT, ALPHA_ID
from reside.replica.lock_access import find_user

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from reside.locks import EtcdUser

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
async def cluster(servers: Servers) -> AsyncIterator[AlphaCluster]:
    async with alpha_cluster(servers) as made:
        yield made


@pytest.fixture(scope="module")
def generated() -> Iterator[dict[str, Credentials]]:
    """Record all accounts that are made, because Alpha forgets their secrets."""
    made: dict[str, Credentials] = {}
    real = Credentials.generate

    def record() -> Credentials:
        credentials = real()
        made[credentials.account_id] = credentials
        return credentials

    with patch.object(Credentials, "generate", record):
        yield made


@pytest.fixture(scope="module")
async def admin(cluster: AlphaCluster, servers: Servers, generated: dict[str, Credentials]) -> Client:
    cluster.accounts = generated
    admin = await cluster.admin()
    for name in ("ada", "bob"):
        info = {"name": name, "class": "long-running", "exclusive": True, "scalable": True}
        await servers.push(f"examples/{name}:v1", type="replica", info=info)
        await admin.load(f"examples/{name}:v1")
        await cluster.has_status(name, "running")
    return admin


async def access_of(cluster: AlphaCluster, name: str) -> EtcdUser | None:
    """Return what the control block of a replica says about its user, as the replica reads it."""
    replica = await cluster.replica(name)
    credentials = cluster.accounts[replica.account]
    async with Node(cluster.servers.jazz.url, credentials) as node:
        await node.login()
        async with opened(node, replica.control_block) as block:
            return await find_user(node, block, None, credentials)


@asynccontextmanager
async def locks_of(cluster: AlphaCluster, name: str, space: str | None = None) -> AsyncIterator[LockService]:
    """Yield the locks of a replica, as it opens them, or those in another space with its user."""

    async def user() -> EtcdUser | None:
        return await access_of(cluster, name)

    account = (await cluster.replica(name)).account
    async with LockService([cluster.servers.etcd.url], space=space or account, user=user, holder=name) as locks:
        yield locks


async def takes_its_lock(cluster: AlphaCluster, name: str) -> bool:
    """Return whether a replica can take a lock of its own."""
    try:
        async with locks_of(cluster, name) as locks, locks.lock("mine", wait=5):
            return True
    except (EtcdUnavailable, LockTimeout):
        return False


async def test_a_replica_takes_its_own_locks_and_no_others(cluster: AlphaCluster, admin: Client) -> None:
    assert await takes_its_lock(cluster, "ada")
    bob = (await cluster.replica("bob")).account
    root = cluster.alpha.data.root.id
    for space, key in ((bob, "mine"), (cluster.credentials.account_id, f"transaction/{root}"), ("alpha", "x")):
        async with locks_of(cluster, "ada", space) as locks:
            with pytest.raises(EtcdUnavailable, match="permission denied"):
                async with locks.lock(key, wait=3):
                    pytest.fail("a replica took the lock of another one")


async def test_only_the_replica_can_read_its_password(cluster: AlphaCluster, admin: Client) -> None:
    """A manager of control blocks reads everything else in them."""
    body = {"account": admin.credentials.account_id, "replica": ALPHA_ID, "contract": ALPHA_CONTRACT}
    await admin.call("grant-permission", {**body, "permission": MANAGE_BLOCKS})
    await eventually("the permission", lambda: admin.has(MANAGE_BLOCKS), within=60)
    async with opened(admin.node, (await cluster.replica("ada")).control_block) as block:
        assert block.lock_access is not None
        assert not (await admin.node.load_map(block.lock_access)).as_dict()
        assert await find_user(admin.node, block, None, admin.credentials) is None
    assert await access_of(cluster, "ada") is not None


async def test_an_etcd_that_has_lost_its_data_asks_for_the_same_users_again(
    cluster: AlphaCluster, admin: Client
) -> None:
    """Meanwhile a stranger takes Alpha's leadership for a day."""
    etcd, leader = cluster.servers.etcd, f"reside/{cluster.credentials.account_id}/leader/alpha"
    await cluster.stop_leading()
    etcd.lose_data()
    stranger = Etcd([etcd.url])
    assert (await stranger.create(leader, "stranger", await stranger.grant(86_400))).succeeded
    cluster.lead()
    await eventually("etcd to refuse strangers", lambda: is_refused(stranger), within=60)
    await eventually("ada to take her lock", lambda: takes_its_lock(cluster, "ada"), within=60)
    await stranger.aclose()


async def is_refused(client: Etcd) -> bool:
    try:
        await client.create("reside/x", "stranger", 0)
    except EtcdUnavailable as error:
        return "has none yet" in str(error)
    return False


async def test_a_cluster_of_an_earlier_release_gets_users(cluster: AlphaCluster, admin: Client) -> None:
    """Its etcd asks for none, and the control blocks name none."""
    await cluster.stop_leading()
    await forget_users(cluster.servers.etcd, cluster.credentials)
    for name in ("ada", "bob"):
        async with opened(cluster.alpha.node, (await cluster.replica(name)).control_block) as block:
            block.root.delete("lockAccess")
    await cluster.alpha.node.flush()
    assert await access_of(cluster, "bob") is None
    cluster.lead()
    for name in ("ada", "bob"):
        await eventually(f"{name} to have access", lambda name=name: access_of(cluster, name), within=60)
        assert await takes_its_lock(cluster, name)


async def test_the_user_of_a_deleted_replica_is_gone(cluster: AlphaCluster, admin: Client) -> None:
    replica = await cluster.replica("bob")
    preview = await admin.call("preview-deletion", {"replica": replica.id})
    await admin.call("delete-replica", {"replica": replica.id, "revision": preview["revision"]})
    await eventually("bob to be gone", cluster.names, lambda names: "bob" not in names.values(), within=60)
    client = Etcd([cluster.servers.etcd.url])
    with pytest.raises(UserRefused):
        await client.gateway.log_in(user_of(cluster.credentials, replica.account))
    await client.aclose()
