"""Finished load requests: the last ones are kept, older ones are deleted, and nothing needs those."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import httpx2
import pytest
from support.deleted_values import is_deleted
from support.eventually import eventually

from reside.alpha import finished_requests, indexes, lookups, open_requests, records
from reside.cli import requests
from reside.cli.session import Session, endpoint_at
from reside.jazz import AccountId
from reside.model import lookup
from reside.model.alpha_contract import FINISHED_REQUESTS, OPEN_REQUESTS
from reside.model.errors import InvalidInput

if TYPE_CHECKING:
    from support.alpha_cluster import AlphaCluster, Client, Servers

pytestmark = pytest.mark.anyio

INFO = {"name": "worker", "class": "long-running", "exclusive": True, "scalable": True}


async def refused(admin: Client, name: str, **members: object) -> int:
    """Return the id of a finished request: the image does not exist."""
    number = await admin.create(f"examples/{name}:none", **members)
    assert (await admin.settled(number)).status == "invalid"
    return number


async def kept(cluster: AlphaCluster, *numbers: int) -> None:
    """Wait until these requests are the finished ones that are kept."""

    async def look() -> set[str]:
        return set(await finished_requests.index(cluster.alpha.data))

    await eventually("the finished requests", look, lambda seen: seen == {str(number) for number in numbers})


async def map_of(cluster: AlphaCluster, number: int) -> str:
    found = await lookups.find(cluster.alpha.data, lookup.load_request_by_id(number))
    assert found is not None
    return found


async def test_the_last_loads_of_a_replica_are_kept_and_the_older_ones_deleted(
    cluster: AlphaCluster, servers: Servers, admin: Client
) -> None:
    await cluster.change_settings(request_history=2)
    for version in range(1, 5):
        await servers.push(
            f"examples/worker:v{version}", type="replica", info=INFO, displayInfo={"en": {"title": f"{version}"}}
        )
    first = await admin.create_spec(image="registry.reside.internal/examples/worker:v1")
    answer = await admin.call("create-load-request", {"wish": first.id})
    done = [(await admin.approve(int(answer["id"]))).id]
    maps = [str(answer["loadRequest"])]
    for version in range(2, 5):
        done.append((await admin.load(f"examples/worker:v{version}")).id)
        maps.append(await map_of(cluster, done[-1]))
    await kept(cluster, *done[2:])
    for co_id in maps[:2]:
        await eventually("the deletion of the request", partial(is_deleted, admin.node, co_id))
    assert [await is_deleted(admin.node, co_id) for co_id in maps] == [True, True, False, False]
    with pytest.raises(InvalidInput, match="finished and not kept any more"):
        await admin.call("create-load-request", {"wish": first.id})
    with pytest.raises(InvalidInput, match="finished and not kept any more"):
        await admin.call("approve-load-request", {"id": done[0], "revision": "any"})
    # its version is complete without it, and so is the next load
    versions = (await cluster.replica("worker")).versions
    assert [(version.request, version.image[-2:]) for version in versions] == list(
        zip(done, ["v1", "v2", "v3", "v4"], strict=True)
    )
    again = await admin.load(f"examples/worker@{versions[0].digest}")
    await kept(cluster, done[3], again.id)
    await cluster.has_status("worker", "stopped", "stopped", "stopped", "stopped", "running")


async def test_requests_that_were_not_carried_out_displace_no_load(
    cluster: AlphaCluster, servers: Servers, admin: Client
) -> None:
    await cluster.change_settings(request_history=1)
    await servers.push("examples/worker:v1", type="replica", info=INFO)
    loaded = await admin.load("examples/worker:v1")
    for _ in range(2):
        last = await refused(admin, "worker", replicaId=loaded.target_replica)
    await kept(cluster, loaded.id, last)


async def test_the_request_that_finished_last_is_kept_although_it_was_made_first(
    cluster: AlphaCluster, servers: Servers, admin: Client
) -> None:
    await cluster.change_settings(request_history=1)
    await servers.push("examples/worker:v1", type="replica", info=INFO)
    waiting = await admin.create("examples/worker:v1")
    await admin.settled(waiting)
    await kept(cluster, await refused(admin, "other"))
    await admin.call("reject-load-request", {"id": waiting, "reason": "not wanted"})
    await kept(cluster, waiting)
    assert (await admin.settled(waiting)).rejection_reason == "not wanted"


async def test_the_command_lists_what_is_kept_and_names_what_is_not(cluster: AlphaCluster, admin: Client) -> None:
    await cluster.change_settings(request_history=1)
    first, last = await refused(admin, "other"), await refused(admin, "other")
    await kept(cluster, last)
    root = await admin.node.load_map(cluster.alpha.data.root.id)
    alpha = AccountId(cluster.credentials.account_id)
    async with httpx2.AsyncClient(trust_env=False) as http:
        session = Session(admin.node, admin.credentials, root, alpha, endpoint_at(cluster.endpoint), lambda: http)
        assert [request.id for request in await requests.read_all(session, every=True)] == [last]
        assert await requests.read_all(session, every=False) == []
        assert (await requests.find(session, last))["status"] == "invalid"
        with pytest.raises(InvalidInput, match=f"load request {first} is not kept any more"):
            await requests.find(session, first)
        with pytest.raises(InvalidInput, match="does not exist"):
            await requests.find(session, 99)


async def test_a_name_that_a_deleted_request_held_is_free(
    cluster: AlphaCluster, servers: Servers, admin: Client
) -> None:
    await cluster.change_settings(request_history=1)
    await servers.push("examples/worker:v1", type="replica", info=INFO)
    held = await admin.create("examples/worker:v1")
    await admin.settled(held)
    await admin.call("reject-load-request", {"id": held, "reason": "not wanted"})
    co_id = await map_of(cluster, held)
    await kept(cluster, await refused(admin, "other"))
    await eventually("the deletion of the request", partial(is_deleted, cluster.alpha.node, co_id))
    loaded = await admin.load("examples/worker:v1")
    assert loaded.approve_request is not None
    assert loaded.approve_request.name == "worker"


async def test_a_lower_bound_takes_effect_at_once(cluster: AlphaCluster, admin: Client) -> None:
    numbers = [await refused(admin, "other") for _ in range(3)]
    await kept(cluster, *numbers)
    await cluster.change_settings(request_history=2)
    await kept(cluster, *numbers[1:])


async def test_requests_of_an_earlier_release_are_taken_over(cluster: AlphaCluster, admin: Client) -> None:
    """They are in a list, and have look-ups by their values."""
    data = cluster.alpha.data
    await cluster.stop_leading()
    made = []
    for number in (1, 2, 3):
        spec = await admin.create_spec(image="registry.reside.internal/examples/worker:none")
        members = {"id": number, "status": "rejected", "rejectionReason": "no", "image": "worker:none", "wish": spec.id}
        request = data.requests_group.create_map(
            members | {"owner": "co_zOwner", "client": admin.credentials.account_id}
        )
        await lookups.set_target(data, lookup.load_request_by_id(number), request.id)
        await lookups.set_target(data, lookup.load_request_by_spec(spec.id), request.id)
        data.requests.append(request.id)
        made.append((spec.id, request.id))
    data.root.set("nextLoadRequest", 4)
    assert [record.value.id for record in await finished_requests.all_requests(data)] == [1, 2, 3]
    await cluster.change_settings(request_history=2)
    cluster.lead()
    await kept(cluster, 2, 3)
    assert data.requests.as_list() == []
    assert await is_deleted(data.node, made[0][1])
    assert (await admin.call("create-load-request", {"wish": made[2][0]}))["id"] == 3
    with pytest.raises(InvalidInput, match="finished and not kept any more"):
        await admin.call("create-load-request", {"wish": made[0][0]})


async def test_the_indexes_are_replaced_and_those_before_deleted(
    cluster: AlphaCluster, admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexes, "REPLACE_AFTER", 4)
    await cluster.change_settings(request_history=1)
    data = cluster.alpha.data
    before = [str(data.root[member]) for member in (OPEN_REQUESTS, FINISHED_REQUESTS)]
    for _ in range(5):
        last = await refused(admin, "other")
    await kept(cluster, last)
    assert not set(await open_requests.index(data.node, data.root))
    assert not {str(data.root[member]) for member in (OPEN_REQUESTS, FINISHED_REQUESTS)} & set(before)
    for co_id in before:
        assert await is_deleted(data.node, co_id)
    waiting = await refused(admin, "other")
    assert (await records.find_request(data, waiting)).value.status == "invalid"
