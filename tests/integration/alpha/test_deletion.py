"""Replicas are deleted: previewed, refused with dependants, carried out whatever dies, and then forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.alpha_cluster import HOST
from support.eventually import eventually

from reside.alpha import lookups, records
from reside.alpha.granting.control_blocks import opened
from reside.alpha.managing import deleting
from reside.model import lookup
from reside.model.constants import ALPHA_CONTRACT, ALPHA_ID
from reside.model.errors import Conflict, InvalidInput, NotAllowed

if TYPE_CHECKING:
    from support.alpha_cluster import AlphaCluster, Client, Servers

    from reside.model.entities import Replica

pytestmark = pytest.mark.anyio

GREETING = f"{HOST}/contracts/greeting.v1"
NAMES = ("greeter", "caller")


@pytest.fixture
async def loaded(cluster: AlphaCluster, servers: Servers, admin: Client) -> dict[str, Replica]:
    """Load a greeter, and a caller that requires it."""
    info = {"class": "long-running", "exclusive": True, "scalable": True}
    await servers.push("contracts/greeting.v1", type="contract", permissions={"greet": {}}, methods={"greet": {}})
    requirement = {"identity": GREETING, "permissions": [{"name": "greet"}]}
    await servers.push(
        "examples/greeter:v1",
        type="replica",
        info=info | {"name": "greeter"},
        implementations={"greeting": {"identity": GREETING}},
    )
    await servers.push(
        "examples/caller:v1", type="replica", info=info | {"name": "caller"}, requirements={"greeting": requirement}
    )
    for name in NAMES:
        await admin.load(f"examples/{name}:v1")
        await cluster.has_status(name, "running")
    return {name: await cluster.replica(name) for name in NAMES}


async def order(client: Client, replica: Replica, *, force: bool = False) -> None:
    """Delete a replica as it is previewed."""
    seen = await client.call("preview-deletion", {"replica": replica.id})
    await client.call("delete-replica", {"replica": replica.id, "revision": seen["revision"], "force": force})


async def is_gone(cluster: AlphaCluster, name: str) -> None:
    """Wait until no replica has this name."""
    await eventually(f"the end of {name}", cluster.names, lambda names: name not in names.values(), within=60)


async def test_a_preview_shows_what_goes(admin: Client, loaded: dict[str, Replica]) -> None:
    greeter, caller = (loaded[name] for name in NAMES)
    seen = await admin.call("preview-deletion", {"replica": caller.id})
    assert seen["objects"] == ["Deployment/caller-1", "Secret/caller"]
    assert seen["holds"] == [[greeter.id, GREETING, "greet", ""]]
    assert seen["dependants"] == []
    seen = await admin.call("preview-deletion", {"replica": greeter.id})
    assert seen["dependants"] == [[caller.id, "caller", ["greeting"]]]


async def test_a_deleted_replica_leaves_nothing_and_its_name_is_free(
    cluster: AlphaCluster, admin: Client, loaded: dict[str, Replica]
) -> None:
    greeter, caller = (loaded[name] for name in NAMES)
    data = cluster.alpha.data
    await order(admin, caller)
    await is_gone(cluster, "caller")
    assert not any(entry.expected.granted for entry in await cluster.permissions("greeter"))
    assert await cluster.alpha.sentinel.read_desired("caller") is None
    for name in (lookup.replica_by_id(caller.id), lookup.replica_by_name("caller"), lookup.rcb_by_id(caller.id)):
        assert await lookups.find(data, name) is None
    assert await lookups.find_all(data, lookup.replicas_by_identity(caller.identity)) == []
    assert caller.account not in data.replicas_by_account
    assert caller.control_block not in data.blocks.as_list()
    async with opened(cluster.alpha.node, caller.control_block) as block:
        assert block.root.group.role_of(caller.account) is None
    with pytest.raises(InvalidInput, match=f"replica {caller.id} does not exist"):
        await admin.call("preview-deletion", {"replica": caller.id})
    await admin.load("examples/caller:v1")
    await cluster.has_status("caller", "running")
    again = await cluster.replica("caller")
    assert again.id > max(caller.id, greeter.id), "an id is never used again"
    assert again.account != caller.account


async def test_dependants_refuse_a_deletion_unless_it_is_forced(
    cluster: AlphaCluster, admin: Client, loaded: dict[str, Replica]
) -> None:
    with pytest.raises(Conflict, match=r"greeter is required by caller \(greeting\): delete these first, or force"):
        await order(admin, loaded["greeter"])
    assert (await cluster.replica("greeter")).deletion is None
    await order(admin, loaded["greeter"], force=True)
    await is_gone(cluster, "greeter")
    await cluster.has_status("caller", "running")
    request = await admin.settled(await admin.create("examples/caller:v1"))
    assert "no replica implements" in str(request.error_message)


async def test_only_a_manager_forces_a_deletion(
    cluster: AlphaCluster, admin: Client, loaded: dict[str, Replica]
) -> None:
    """8d00e49: an owner could delete what replicas of others require."""
    owner = await cluster.client("owner")
    await admin.call("change-owner", {"replica": loaded["greeter"].id, "owner": owner.credentials.account_id})
    with pytest.raises(NotAllowed, match="replica:manage:all"):
        await order(owner, loaded["greeter"], force=True)
    assert (await cluster.replica("greeter")).deletion is None


async def test_an_outdated_preview_and_a_platform_replica_are_refused(
    cluster: AlphaCluster, admin: Client, loaded: dict[str, Replica]
) -> None:
    body = {"replica": loaded["caller"].id, "revision": "0" * 64}
    with pytest.raises(Conflict, match="has changed: look at it again"):
        await admin.call("delete-replica", body)
    with pytest.raises(NotAllowed, match="replica:manage:all"):
        await (await cluster.client("stranger")).call("delete-replica", body)
    with pytest.raises(InvalidInput, match=f"replica {ALPHA_ID} does not exist"):
        await admin.call("preview-deletion", {"replica": ALPHA_ID})


async def test_direct_grants_of_and_to_a_deleted_replica_end(
    cluster: AlphaCluster, admin: Client, loaded: dict[str, Replica]
) -> None:
    user, greeter, caller = await cluster.client("user"), loaded["greeter"], loaded["caller"]
    greet = {"replica": greeter.id, "contract": GREETING, "permission": "greet"}
    read = {"replica": cluster.alpha.context.rcb.number, "contract": ALPHA_CONTRACT, "permission": "replica:read:all"}
    await admin.call("grant-permission", {"account": user.credentials.account_id, **greet})
    await admin.call("grant-permission", {"account": greeter.account, **read})
    await order(admin, caller)
    await is_gone(cluster, "caller")
    await order(admin, greeter)
    await is_gone(cluster, "greeter")
    for account in (user.credentials.account_id, greeter.account):
        granted = await cluster.alpha.node.load_map(cluster.alpha.data.direct_grants[account])
        assert {granted[key]["status"] for key in granted} == {"revoked"}
    entries = cluster.alpha.context.rcb.permissions()
    assert [e for e in entries if e.ref.account == greeter.account and e.expected.granted] == []


async def test_while_it_is_deleted_a_replica_serves_no_new_requirement_and_is_not_changed(
    cluster: AlphaCluster, admin: Client, loaded: dict[str, Replica]
) -> None:
    cluster.orders.reporting = False
    await order(admin, loaded["greeter"], force=True)
    for method in ("enable-replica", "preview-deletion"):
        with pytest.raises(Conflict, match="greeter is being deleted"):
            await admin.call(method, {"replica": loaded["greeter"].id})
    request = await admin.settled(await admin.create("examples/greeter:v1"))
    assert "greeter is being deleted: load the image again when it is gone" in str(request.error_message)
    cluster.orders.reporting = True
    cluster.sentinel.process_again()
    await is_gone(cluster, "greeter")


STEPS = ("sync_providers", "sync_grants", "_revoke", "_forget", "_destroy_secret")


@pytest.mark.parametrize("step", STEPS)
async def test_a_deletion_is_continued_by_the_next_leader(
    cluster: AlphaCluster, admin: Client, loaded: dict[str, Replica], step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller, whole = loaded["caller"], getattr(deleting, step)
    reached = []

    async def dying(*arguments: Any) -> Any:
        if not reached:
            reached.append(await whole(*arguments))
        raise RuntimeError("the process dies here")

    monkeypatch.setattr(deleting, step, dying)
    await order(admin, caller)
    await eventually(f"the death after {step}", lambda: reached)
    await cluster.stop_leading()
    monkeypatch.setattr(deleting, step, whole)
    cluster.lead()
    await is_gone(cluster, "caller")
    assert caller.account not in cluster.alpha.data.replicas_by_account
    assert not any(entry.expected.granted for entry in await cluster.permissions("greeter"))


async def test_a_deletion_whose_last_write_is_lost_leaves_no_replica(
    cluster: AlphaCluster, admin: Client, loaded: dict[str, Replica], monkeypatch: pytest.MonkeyPatch
) -> None:
    caller, whole = loaded["caller"], lookups.remove_once
    reached = []

    def dying(values: Any, value: str) -> None:
        if values is cluster.alpha.data.replicas:
            reached.append(value)
            raise RuntimeError("the process dies here")
        whole(values, value)

    monkeypatch.setattr(lookups, "remove_once", dying)
    await order(admin, caller)
    await eventually("the death", lambda: reached)
    await cluster.stop_leading()
    monkeypatch.setattr(lookups, "remove_once", whole)
    cluster.lead()
    await is_gone(cluster, "caller")
    assert await records.find_replica(cluster.alpha.data, caller.id) is None
