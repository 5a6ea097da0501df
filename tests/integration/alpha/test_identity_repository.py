"""The identity repository of a cluster is settled when Alpha's data is created."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from support.alpha_cluster import alpha_settings
from support.etcd import forget_users

from reside.alpha import app as alpha_app
from reside.alpha import bootstrap
from reside.alpha.data import identity_repository, make_data
from reside.jazz import Credentials, Node
from reside.model import identities
from reside.model.alpha_contract import ROOT_NAME
from reside.model.constants import ALPHA_IDENTITY, OWN
from reside.model.errors import InvalidInput
from reside.model.identities import resolved
from reside.replica.control_block import ControlBlock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from support.replicas import Servers

    from reside.jazz import Group

pytestmark = pytest.mark.anyio
REPOSITORY = "ghcr.io/acme/reside"


@asynccontextmanager
async def opened(servers: Servers, credentials: Credentials) -> AsyncIterator[tuple[Node, Group]]:
    """Yield a node of Alpha, and its public group."""
    async with Node(servers.jazz.url, credentials) as node:
        public = (await node.register("alpha")).profile.group
        await node.flush()
        yield node, public


async def test_a_new_cluster_has_the_repository_of_its_first_bootstrap(servers: Servers) -> None:
    credentials = Credentials.generate()
    async with opened(servers, credentials) as (node, public):
        assert identity_repository((await make_data(node, public, REPOSITORY)).root) == REPOSITORY
    for later in ("quay.io/acme/reside", None):  # another bootstrap, and a start of Alpha's pod
        async with opened(servers, credentials) as (node, public):
            assert identity_repository((await make_data(node, public, later)).root) == REPOSITORY


async def test_data_that_a_stranger_has_created_without_content_is_settled(servers: Servers) -> None:
    credentials = Credentials.generate()
    async with opened(servers, credentials) as (node, public):
        await node.unique_map(public, ROOT_NAME)
        await node.flush()
    async with opened(servers, credentials) as (node, public):
        assert identity_repository((await make_data(node, public, REPOSITORY)).root) == REPOSITORY


async def test_a_cluster_without_a_repository_keeps_the_names_of_code(servers: Servers) -> None:
    """Also one of an earlier release, whose identities never depended on the setting."""
    credentials = Credentials.generate()
    async with opened(servers, credentials) as (node, public):
        assert identity_repository((await make_data(node, public)).root) == OWN
    async with opened(servers, credentials) as (node, public):
        assert identity_repository((await make_data(node, public, REPOSITORY)).root) == OWN


@pytest.fixture
async def accounts(servers: Servers) -> AsyncIterator[tuple[Credentials, Credentials]]:
    """Yield accounts of an Alpha and a Sentinel; then let this process have the names of code as identities again."""
    alpha, sentinel = Credentials.generate(), Credentials.generate()
    yield alpha, sentinel
    identities.use(OWN)
    await forget_users(servers.etcd, alpha)


async def test_system_replicas_have_identities_under_the_repository(
    servers: Servers, accounts: tuple[Credentials, Credentials]
) -> None:
    alpha, _ = accounts
    where = (servers.jazz.url, [servers.etcd.url], *accounts)
    blocks = await bootstrap.prepare(*where, REPOSITORY)
    assert (identities.repository(), resolved(ALPHA_IDENTITY)) == (REPOSITORY, f"{REPOSITORY}/replicas/alpha")
    async with opened(servers, alpha) as (node, public):
        found = await node.find_unique_map(public.id, f"system.by-identity.{REPOSITORY}/replicas/alpha")
        assert found is not None
        assert found["account"] == alpha.account_id
        assert await node.find_unique_map(public.id, f"system.by-identity.{ALPHA_IDENTITY}") is None
        block = await ControlBlock.load(node, blocks.sentinel)
        assert {each.ref.contract for each in block.permissions()} == {f"{REPOSITORY}/contracts/kubernetes-sentinel.v1"}
    for other in ("quay.io/acme/reside", None):
        with pytest.raises(InvalidInput, match=f"are under {REPOSITORY}, .*: set it to {REPOSITORY}"):
            await bootstrap.prepare(*where, other)
    assert await bootstrap.prepare(*where, REPOSITORY) == blocks


async def test_a_cluster_without_a_repository_may_get_an_image_repository_later(
    servers: Servers, accounts: tuple[Credentials, Credentials]
) -> None:
    where = (servers.jazz.url, [servers.etcd.url], *accounts)
    for image_repository in (None, REPOSITORY, "quay.io/acme/reside"):
        await bootstrap.prepare(*where, image_repository)
        assert identities.repository() == OWN


async def test_alpha_does_not_start_with_another_repository_than_that_of_the_cluster(
    servers: Servers, accounts: tuple[Credentials, Credentials]
) -> None:
    """It would take all permissions for those of contracts that it does not implement, and revoke them."""
    blocks = await bootstrap.prepare(servers.jazz.url, [servers.etcd.url], *accounts, REPOSITORY)
    identities.use(OWN)
    with pytest.raises(InvalidInput, match=f"under {REPOSITORY}, .* set RESIDE_IDENTITY_REPOSITORY={REPOSITORY}"):
        async with alpha_app.started(alpha_settings(servers, accounts[0], blocks.alpha), serve=False):
            pass
