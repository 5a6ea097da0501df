"""Loading images with a running Alpha on a real sync server, etcd and registry, and a fake Sentinel."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from support.alpha_cluster import HOST, AlphaCluster, Client, Servers
from support.deleted_values import is_deleted
from support.eventually import eventually

from reside.alpha import records
from reside.alpha.app import started
from reside.alpha.finished_requests import all_requests
from reside.alpha.granting.control_blocks import add_expected, opened
from reside.alpha.lookups import find
from reside.model.constants import ALPHA_CONTRACT
from reside.model.errors import Conflict, InvalidInput
from reside.model.permissions import Grant, PermissionRef

pytestmark = pytest.mark.anyio

GREETING = f"{HOST}/contracts/greeting.v1"


def info(name: str, **members: Any) -> dict[str, Any]:
    return {"name": name, "class": "long-running", "exclusive": True, "scalable": True} | members


async def push_greeter(servers: Servers, version: int = 1, **members: Any) -> None:
    permissions = {"greet": {"params": {"type": "object", "additionalProperties": {"type": "string"}}}}
    await servers.push("contracts/greeting.v1", type="contract", permissions=permissions, methods={"greet": {}})
    document = {"info": info("greeter"), "implementations": {"greeting": {"identity": GREETING}}} | members
    await servers.push(f"examples/greeter:v{version}", type="replica", **document)


async def push_caller(servers: Servers, **members: Any) -> None:
    permission = {"name": "greet", "params": {"from": "{replica.name}"}}
    document = {
        "info": info("caller", exclusive=False, scalable=False),
        "requirements": {"greeting": {"identity": GREETING, "permissions": [permission]}},
    } | members
    await servers.push("examples/caller:v1", type="replica", **document)


async def test_an_image_becomes_a_running_replica(cluster: AlphaCluster, servers: Servers, admin: Client) -> None:
    await push_greeter(servers)
    number = await admin.create("examples/greeter:v1")
    request = await admin.settled(number)
    assert (request.status, number) == ("requires-approval", 1)
    assert request.approve_request is not None
    assert request.approve_request.name == "greeter"
    assert request.preview is not None
    assert {c["object"] for c in request.preview["changes"]} == {
        "Deployment/greeter-1",
        "Secret/greeter",
        "Service/greeter",
    }
    request = await admin.approve(number)
    assert (request.version, request.target_replica) == (1, 3)
    await cluster.has_status("greeter", "running")
    assert await cluster.names() == {3: "greeter"}


async def test_a_scalable_replica_changes_version_without_a_gap(
    cluster: AlphaCluster, servers: Servers, admin: Client
) -> None:
    for version in (1, 2):
        await push_greeter(servers, version)
    await admin.load("examples/greeter:v1")
    await cluster.has_status("greeter", "running")
    cluster.orders.hold.add("Deployment/greeter-2")
    await admin.load("examples/greeter:v2")
    await cluster.has_status("greeter", "running-outdated", "starting")
    cluster.orders.hold.clear()
    cluster.sentinel.process_again()
    await cluster.has_status("greeter", "stopped", "running")
    await eventually(
        "the end of the old workload", lambda: cluster.orders.seen["greeter"][-1], lambda seen: seen == {"greeter-2": 1}
    )
    assert all(sum(wanted.values()) >= 1 for wanted in cluster.orders.seen["greeter"])


async def test_a_non_scalable_replica_stops_first(cluster: AlphaCluster, servers: Servers, admin: Client) -> None:
    await push_greeter(servers)
    await admin.load("examples/greeter:v1")
    await push_caller(servers)
    await admin.load("examples/caller:v1")
    await cluster.has_status("caller", "running")
    await push_caller(servers, displayInfo={"en": {"title": "Another"}})
    await admin.load("examples/caller:v1", replicaId=4)
    await cluster.has_status("caller", "stopped", "running")
    seen = cluster.orders.seen["caller"]
    await eventually("the end of the old workload", lambda: seen[-1], lambda last: last == {"caller-2": 1})
    assert all(sum(wanted.values()) <= 1 for wanted in seen)
    assert {"caller-1": 0, "caller-2": 0} in seen


async def test_a_requirement_becomes_an_expected_permission_of_the_serving_replica(
    cluster: AlphaCluster, servers: Servers, admin: Client
) -> None:
    await push_greeter(servers)
    await push_caller(servers)
    await admin.load("examples/greeter:v1")
    number = await admin.create("examples/caller:v1")
    request = await admin.settled(number)
    assert request.approve_request is not None
    requirement = request.approve_request.requirements["greeting"]
    assert [r.name for r in requirement.replicas] == ["greeter"]
    assert [(p.permission, p.params) for p in requirement.permissions] == [("greet", {"from": "caller"})]
    await admin.approve(number)
    greeter, caller = await cluster.replica("greeter"), await cluster.replica("caller")
    (entry,) = await eventually("the expected permission", partial(cluster.permissions, "greeter"))
    assert (entry.ref.account, entry.ref.name, entry.current) == (caller.account, "greet", None)
    assert entry.expected == Grant(granted=True, params={"from": "caller"})
    async with opened(cluster.alpha.node, caller.control_block) as block:
        await eventually("the requirement", block.requirements, lambda now: now == {"greeting": [greeter.account]})


async def test_the_approver_may_choose_another_replica(cluster: AlphaCluster, servers: Servers, admin: Client) -> None:
    await push_greeter(servers, 1, info=info("greeter", exclusive=False))
    await push_caller(servers)
    await admin.load("examples/greeter:v1")
    await admin.load("examples/greeter:v1")
    number = await admin.create("examples/caller:v1")
    request = await admin.settled(number)
    assert request.approve_request is not None
    requirement = request.approve_request.requirements["greeting"]
    assert [[c.name for c in some] for some in (requirement.replicas, requirement.alternatives)] == [
        ["greeter"],
        ["greeter-1"],
    ]
    with pytest.raises(InvalidInput, match="does not implement its contract"):
        await admin.approve(number, choices={"greeting": [99]})
    assert (await admin.settled(number)).status == "requires-approval"
    await admin.approve(number, choices={"greeting": [4]})
    caller = await cluster.replica("caller")
    assert [c.name for c in caller.version(1).requirements["greeting"].replicas] == ["greeter-1"]


async def test_removed_requirements_are_revoked_at_the_serving_replica_and_manual_grants_stay(
    cluster: AlphaCluster, servers: Servers, admin: Client
) -> None:
    await push_greeter(servers)
    await push_caller(servers)
    await admin.load("examples/greeter:v1")
    await admin.load("examples/caller:v1")
    await cluster.has_status("caller", "running")
    greeter, caller = await cluster.replica("greeter"), await cluster.replica("caller")
    by_hand = PermissionRef(caller.account, GREETING, "wave")
    await add_expected(cluster.alpha.node, greeter.control_block, {by_hand: Grant(granted=True)})
    await push_caller(servers, requirements={})
    await admin.load("examples/caller:v1", replicaId=4)

    async def granted() -> dict[str, bool]:
        return {p.ref.name: p.expected.granted for p in await cluster.permissions("greeter")}

    await eventually("the revocation", granted, lambda now: now == {"greet": False, "wave": True})


async def test_a_oneshot_replica_ends_as_completed(cluster: AlphaCluster, servers: Servers, admin: Client) -> None:
    oneshot = info("report", **{"class": "oneshot"})
    await servers.push("examples/report:v1", type="replica", info=oneshot)
    await admin.load("examples/report:v1")
    await cluster.has_status("report", "completed")


async def test_the_same_spec_gives_the_same_request(cluster: AlphaCluster, servers: Servers, admin: Client) -> None:
    await push_greeter(servers)
    spec = await admin.create_spec(image=f"{HOST}/examples/greeter:v1")
    answers = [await admin.call("create-load-request", {"wish": spec.id}) for _ in range(2)]
    assert answers[0] == answers[1]
    assert len(await all_requests(cluster.alpha.data)) == 1


async def test_racing_requests_get_ids_and_names_of_their_own(
    cluster: AlphaCluster, servers: Servers, admin: Client
) -> None:
    await push_greeter(servers, 1, info=info("greeter", exclusive=False))
    numbers = await asyncio.gather(*(admin.create("examples/greeter:v1") for _ in range(4)))
    assert sorted(numbers) == [1, 2, 3, 4]
    await asyncio.gather(*(admin.approve(number) for number in numbers))
    assert sorted((await cluster.names()).values()) == ["greeter", "greeter-1", "greeter-2", "greeter-3"]
    assert sorted(await cluster.names()) == [3, 4, 5, 6]


async def test_a_changed_state_is_previewed_again(cluster: AlphaCluster, servers: Servers, admin: Client) -> None:
    """Two requests for one exclusive replica: the first creates the instance, so the second now has another effect."""
    for version in (1, 2):
        await push_greeter(servers, version)
    first = await admin.create("examples/greeter:v1")
    await admin.settled(first)  # so that it, and not the second, holds the name greeter
    second = await admin.create("examples/greeter:v2")
    before = await admin.settled(second)
    await admin.approve(first)
    await cluster.has_status("greeter", "running")
    with pytest.raises(Conflict, match="previewed again"):
        await admin.approve(second)
    again = await admin.cluster_request(
        second, lambda r: r.status == "requires-approval" and (r.preview or {}) != before.preview
    )
    assert again.existing_replica == 3
    await admin.approve(second)
    await cluster.has_status("greeter", "stopped", "running")


async def test_another_revision_than_the_previewed_one_is_refused(
    cluster: AlphaCluster, servers: Servers, admin: Client
) -> None:
    await push_greeter(servers)
    number = await admin.create("examples/greeter:v1")
    await admin.settled(number)
    with pytest.raises(Conflict, match="another revision"):
        await admin.call("approve-load-request", {"id": number, "revision": "0" * 64})
    assert (await admin.settled(number)).status == "requires-approval"


async def test_another_name_leads_to_a_new_preview(cluster: AlphaCluster, servers: Servers, admin: Client) -> None:
    await push_greeter(servers)
    number = await admin.create("examples/greeter:v1")
    request = await admin.settled(number)
    with pytest.raises(Conflict, match="with the name hello"):
        await admin.approve(number, name="hello")
    request = await admin.cluster_request(
        number, lambda r: r.approve_request is not None and r.status == "requires-approval"
    )
    assert request.approve_request is not None
    assert request.approve_request.name == "hello"
    await admin.approve(number)
    assert await cluster.names() == {3: "hello"}


async def test_a_request_is_approved_once_and_never_after_a_rejection(
    cluster: AlphaCluster, servers: Servers, admin: Client
) -> None:
    await push_greeter(servers)
    approved = await admin.create("examples/greeter:v1")
    await admin.settled(approved)  # the first to be validated has the name
    rejected, invalid = await admin.create("examples/greeter:v1"), await admin.create("examples/nothing:v1")
    await admin.settled(rejected)
    await admin.call("reject-load-request", {"id": rejected, "reason": "not today"})
    request = await admin.approve(approved)
    assert request.preview is not None
    for number, state in ((approved, "approved"), (rejected, r"rejected \(not today\)"), (invalid, "invalid")):
        await admin.settled(number)
        body = {"id": number, "revision": request.revision}
        with pytest.raises(Conflict, match=f"load request {number} is {state}"):
            await admin.call("approve-load-request", body)
        with pytest.raises(Conflict, match=f"load request {number} is {state}"):
            await admin.call("reject-load-request", {"id": number, "reason": "again"})
    assert len((await cluster.replica("greeter")).versions) == 1


async def test_the_agent_secret_is_deleted_from_jazz_once_it_is_live(
    cluster: AlphaCluster, servers: Servers, admin: Client
) -> None:
    await push_greeter(servers)
    await admin.load("examples/greeter:v1")
    await cluster.has_status("greeter", "running")
    replica = await cluster.replica("greeter")
    assert replica.agent_secret is not None
    await eventually("the deletion of the secret", partial(is_deleted, cluster.alpha.node, replica.agent_secret))


async def test_disabling_stops_a_replica_and_enabling_starts_it(
    cluster: AlphaCluster, servers: Servers, admin: Client
) -> None:
    await push_greeter(servers)
    await admin.load("examples/greeter:v1")
    await cluster.has_status("greeter", "running")
    target = await find(cluster.alpha.data, "replica.by-name.greeter")
    assert target is not None
    seen = await admin.node.load_map(target)
    management = await admin.node.load_map(seen["management"])
    management.set("enabled", False)
    await cluster.has_status("greeter", "stopped")
    management.set("enabled", True)
    await cluster.has_status("greeter", "running")


async def test_loading_enables_a_disabled_replica(cluster: AlphaCluster, servers: Servers, admin: Client) -> None:
    for version in (1, 2):
        await push_greeter(servers, version)
    await admin.load("examples/greeter:v1")
    record = (await records.all_replicas(cluster.alpha.data))[0]
    record.management.set("enabled", False)
    await cluster.has_status("greeter", "stopped")
    await admin.load("examples/greeter:v2")
    await cluster.has_status("greeter", "stopped", "running")


async def test_two_running_alphas_lose_nothing_and_do_nothing_twice(
    cluster: AlphaCluster, servers: Servers, admin: Client
) -> None:
    """As in an update: one leads, both serve RPC; the leader processes the requests that the other accepts."""
    await push_greeter(servers, 1, info=info("greeter", exclusive=False))
    async with started(cluster.settings()) as second:
        endpoints = (cluster.endpoint, str(second.node.account.profile["endpoints"]["internal"]))
        assert endpoints[0] != endpoints[1]
        specs = [await admin.create_spec(image=f"{HOST}/examples/greeter:v1") for _ in range(4)]
        body = [{"wish": spec.id} for spec in specs for _ in endpoints]
        created = await asyncio.gather(
            *(admin.call("create-load-request", b, endpoint=endpoints[n % 2]) for n, b in enumerate(body))
        )
        numbers = sorted({answer["id"] for answer in created})
        assert len(numbers) == len(specs)
        for turn, number in enumerate(numbers):
            request = await admin.settled(number)
            assert request.preview is not None, request.error_message
            approval = {"id": number, "revision": request.revision}
            await admin.call("approve-load-request", approval, endpoint=endpoints[turn % 2])
            with pytest.raises(Conflict, match="is approved"):
                await admin.call("approve-load-request", approval, endpoint=endpoints[(turn + 1) % 2])
        for number in numbers:
            await admin.cluster_request(number, lambda r: r.version is not None)
    assert sorted(await cluster.names()) == [3, 4, 5, 6]
    assert len(await all_requests(cluster.alpha.data)) == len(specs)


async def test_edits_of_a_removed_manager_do_not_count_but_earlier_ones_stay(
    cluster: AlphaCluster, servers: Servers, admin: Client
) -> None:
    await push_greeter(servers)
    await admin.load("examples/greeter:v1")
    await cluster.has_status("greeter", "running")
    manager = await cluster.client("manager")
    ref = PermissionRef(manager.credentials.account_id, ALPHA_CONTRACT, "replica:manage:all")
    block = cluster.alpha.context.rcb
    for name in ("replica:manage:all", "replica:read:all"):
        await block.set_expected(replace(ref, name=name), Grant(granted=True))
        await eventually(f"the permission {name}", partial(manager.has, name))
    record = (await records.all_replicas(cluster.alpha.data))[0]
    management = await manager.node.load_map(record.management.id)
    management.set("enabled", "nonsense")
    management.set("placementGroup", "big")
    management.set("enabled", False)
    await cluster.has_status("greeter", "stopped")
    await block.set_expected(ref, Grant(granted=False))
    await eventually("the end of the permission", lambda: not manager.has("replica:manage:all"))
    replica = await cluster.replica("greeter")
    assert (replica.management.enabled, replica.management.placement_group) == (False, "big")
    edit = record.management.edit("enabled")
    assert edit is not None
    assert edit.by == cluster.alpha.account


async def test_a_requester_reads_its_own_request_and_others_do_not(cluster: AlphaCluster, admin: Client) -> None:
    requester, stranger = await cluster.client("requester"), await cluster.client("stranger")
    ref = PermissionRef(requester.credentials.account_id, ALPHA_CONTRACT, "load-request:create")
    await cluster.alpha.context.rcb.set_expected(ref, Grant(granted=True))
    await eventually("the permission", lambda: requester.has("load-request:create"))
    answer = await requester.call(
        "create-load-request", {"wish": (await requester.create_spec(image=f"{HOST}/examples/nothing:v1")).id}
    )
    await requester.settled(answer["id"])
    for client, status in ((requester, "invalid"), (admin, "invalid"), (stranger, None)):
        seen = await client.node.load_map(answer["loadRequest"])
        await eventually(
            f"the status {status}", lambda seen=seen: seen.get("status"), lambda found, status=status: found == status
        )


async def test_the_requests_of_a_client_share_a_group_that_no_other_client_reads(
    cluster: AlphaCluster, servers: Servers, admin: Client
) -> None:
    await push_greeter(servers)
    numbers = [await admin.create("examples/greeter:v1") for _ in range(2)]
    maps = [(await records.find_request(cluster.alpha.data, number)).map for number in numbers]
    assert maps[0].group.id == maps[1].group.id
    assert maps[0].group.role_of(admin.credentials.account_id) == "reader"
    other = await cluster.client("other")
    assert maps[0].group.role_of(other.credentials.account_id) is None
