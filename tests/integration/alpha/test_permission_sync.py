"""Permission sync: what is due holds at any time, and a version that runs keeps what it has."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from support.alpha_cluster import HOST
from support.eventually import eventually

from reside.alpha.granting.control_blocks import opened
from reside.model.permissions import Grant, PermissionRef

if TYPE_CHECKING:
    from support.alpha_cluster import AlphaCluster, Client, Servers

pytestmark = pytest.mark.anyio

GREETING = f"{HOST}/contracts/greeting.v1"


async def push(servers: Servers, name: str, version: int, **manifest: Any) -> None:
    """Push a version of a replica that is not exclusive."""
    info = {"name": name, "class": "long-running", "exclusive": name == "caller", "scalable": True}
    titled = {"en": {"title": f"version {version}"}}
    await servers.push(f"examples/{name}:v{version}", type="replica", info=info, displayInfo=titled, **manifest)


async def push_greeter(servers: Servers) -> None:
    """Push the contract `greeting` and a replica that implements it."""
    names = ("greet", "wave", "shout")
    await servers.push(
        "contracts/greeting.v1", type="contract", permissions={n: {} for n in names}, methods={"greet": {}}
    )
    await push(servers, "greeter", 1, implementations={"greeting": {"identity": GREETING}})


async def push_caller(servers: Servers, version: int, *names: str, params: dict[str, Any] | None = None) -> None:
    """Push a version of the caller that requires these permissions."""
    permissions = [{"name": name, "params": params or {}} for name in names]
    await push(
        servers, "caller", version, requirements={"greeting": {"identity": GREETING, "permissions": permissions}}
    )


@pytest.fixture
async def loaded(servers: Servers, admin: Client) -> None:
    """Load the greeter, and a caller that may greet and wave."""
    await push_greeter(servers)
    await push_caller(servers, 1, "greet", "wave", params={"times": 1})
    await admin.load("examples/greeter:v1")
    await admin.load("examples/caller:v1")


async def granted(cluster: AlphaCluster, name: str = "greeter") -> dict[str, dict[str, Any]]:
    """Return the params of the permissions that are expected to be granted, by name."""
    return {p.ref.name: p.expected.params for p in await cluster.permissions(name) if p.expected.granted}


async def are_granted(cluster: AlphaCluster, *names: str, on: str = "greeter") -> None:
    await eventually(
        f"{names} to be granted on {on}", partial(granted, cluster, on), lambda now: sorted(now) == sorted(names)
    )


@pytest.mark.usefixtures("loaded")
async def test_the_running_version_keeps_its_grants_until_the_next_one_has_taken_over(
    cluster: AlphaCluster, servers: Servers, admin: Client
) -> None:
    """b5760d8: the grants of the running version were withdrawn when the next one was created."""
    await are_granted(cluster, "greet", "wave")
    await push_caller(servers, 2, "greet", "shout", params={"times": 2})
    cluster.orders.hold.add("Deployment/caller-2")
    await admin.load("examples/caller:v2")
    await cluster.has_status("caller", "running-outdated", "starting")
    await are_granted(cluster, "greet", "wave", "shout")
    assert (await granted(cluster))["greet"] == {"times": 1}
    cluster.orders.hold.clear()
    cluster.sentinel.process_again()
    await cluster.has_status("caller", "stopped", "running")
    await are_granted(cluster, "greet", "shout")
    assert (await granted(cluster))["greet"] == {"times": 2}


@pytest.mark.usefixtures("loaded")
async def test_an_approver_sees_which_permissions_are_new_and_which_are_gone(servers: Servers, admin: Client) -> None:
    await push_caller(servers, 2, "greet", "shout", params={"times": 1})
    request = await admin.settled(await admin.create("examples/caller:v2"))
    assert request.approve_request is not None
    found = request.approve_request.difference
    assert found is not None
    assert found.version == 1
    assert [(p.permission, p.replica, p.params) for p in found.added] == [("shout", "greeter", {"times": 1})]
    assert [p.permission for p in found.removed] == ["wave"]


@pytest.mark.usefixtures("loaded")
async def test_a_changed_entry_is_brought_back(cluster: AlphaCluster) -> None:
    """Also one that a manager of control blocks has changed while no Alpha led."""
    await are_granted(cluster, "greet", "wave")
    greeter, caller = await cluster.replica("greeter"), await cluster.replica("caller")
    ref = PermissionRef(caller.account, GREETING, "greet")
    for leads in (True, False):
        if not leads:
            await cluster.stop_leading()
        async with opened(cluster.alpha.node, greeter.control_block) as block:
            await block.set_expected(ref, Grant(granted=False))
        if not leads:
            assert sorted(await granted(cluster)) == ["wave"]
            cluster.lead()
        await are_granted(cluster, "greet", "wave")


@pytest.mark.usefixtures("loaded")
async def test_grants_of_people_stay(cluster: AlphaCluster, servers: Servers, admin: Client) -> None:
    await are_granted(cluster, "greet", "wave")
    greeter, caller = await cluster.replica("greeter"), await cluster.replica("caller")
    async with opened(cluster.alpha.node, greeter.control_block) as block:
        await block.set_expected(PermissionRef(caller.account, GREETING, "shout"), Grant(granted=True))
        await block.set_expected(PermissionRef(admin.node.account_id, GREETING, "greet", "a"), Grant(granted=True))
    await push_caller(servers, 2)
    await admin.load("examples/caller:v2")
    await cluster.has_status("caller", "stopped", "running")
    await are_granted(cluster, "greet", "shout")
