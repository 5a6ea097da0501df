"""Desired stacks, candidates, and the Sentinel's map of candidates: their history is dropped from time to time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.deleted_values import is_deleted
from support.eventually import eventually

from reside.alpha.declared_stacks import REPLACE_AFTER
from reside.model.sentinel_data import preview_key, stack_map
from reside.model.stacks import OBJECTS, DesiredStack

if TYPE_CHECKING:
    from support.alpha_cluster import AlphaCluster, Client, Servers

    from reside.jazz import CoMap

pytestmark = pytest.mark.anyio


def stack(cluster: AlphaCluster, number: int) -> DesiredStack:
    """Return a stack with one object that differs for each number."""
    objects = ({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"n": f"secret {number}"}},)
    return DesiredStack("history", cluster.alpha.account, objects)


async def pointer(cluster: AlphaCluster, name: str) -> CoMap:
    data = cluster.alpha.data
    found = await data.node.find_unique_map(data.stacks_group.id, stack_map(name))
    assert found is not None
    return found


async def push(servers: Servers, name: str) -> None:
    info = {"name": name, "class": "long-running", "exclusive": True, "scalable": True}
    await servers.push(f"examples/{name}:v1", type="replica", info=info)


async def test_a_stack_gets_a_new_map_after_some_changes_and_the_old_one_is_deleted(cluster: AlphaCluster) -> None:
    sentinel = cluster.alpha.sentinel
    await sentinel.declare(stack(cluster, 0))
    maps, found = await sentinel.open(), await pointer(cluster, "history")
    first = maps.desired["history"]
    for number in range(1, REPLACE_AFTER + 1):
        assert maps.desired["history"] == found["target"] == first
        await sentinel.declare(stack(cluster, number))
    assert maps.desired["history"] == found["target"] != first
    assert await is_deleted(cluster.alpha.node, str(first))
    assert "replaced" not in found
    assert await sentinel.read_desired("history") == stack(cluster, REPLACE_AFTER)
    await eventually("the report of the last one", lambda: sentinel.read_report("history"), lambda r: bool(r.objects))


async def test_a_stack_that_was_not_deleted_before_the_process_died_is_deleted_later(
    cluster: AlphaCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    sentinel = cluster.alpha.sentinel

    async def dying(*_: Any) -> None:
        raise RuntimeError("the process dies here")

    for number in range(REPLACE_AFTER):
        await sentinel.declare(stack(cluster, number))
    first = (await sentinel.open()).desired["history"]
    with monkeypatch.context() as patch:
        patch.setattr("reside.alpha.declared_stacks.erase_replaced", dying)
        with pytest.raises(RuntimeError):
            await sentinel.declare(stack(cluster, REPLACE_AFTER))
    assert not await is_deleted(cluster.alpha.node, str(first))
    await sentinel.declare(stack(cluster, REPLACE_AFTER))
    assert await is_deleted(cluster.alpha.node, str(first))


async def test_a_stack_of_an_earlier_release_is_read_and_moves_at_its_next_change(cluster: AlphaCluster) -> None:
    data, sentinel = cluster.alpha.data, cluster.alpha.sentinel
    before = await data.node.unique_map(data.stacks_group, stack_map("history"), stack(cluster, 0).document())
    assert await sentinel.read_desired("history") == stack(cluster, 0)
    await sentinel.declare(stack(cluster, 0))
    assert (await sentinel.open()).desired["history"] == before.id
    await sentinel.declare(stack(cluster, 1))
    assert (await sentinel.open()).desired["history"] == before["target"] != before.id
    assert OBJECTS not in before
    assert await sentinel.read_desired("history") == stack(cluster, 1)


async def test_a_removed_stack_leaves_no_content(cluster: AlphaCluster) -> None:
    sentinel = cluster.alpha.sentinel
    await sentinel.declare(stack(cluster, 0))
    target = (await pointer(cluster, "history"))["target"]
    await eventually("the end of the report", lambda: sentinel.remove("history"))
    assert await sentinel.read_desired("history") is None
    assert await is_deleted(cluster.alpha.node, str(target))


async def test_the_candidate_of_a_finished_request_is_deleted(
    cluster: AlphaCluster, servers: Servers, admin: Client
) -> None:
    await push(servers, "worker")
    number = await admin.create("examples/worker:v1")
    request = await admin.settled(number)
    assert request.preview is not None
    previews = (await cluster.alpha.sentinel.open()).previews
    candidate = previews[preview_key(number, request.preview["revision"])]
    assert not await is_deleted(cluster.alpha.node, str(candidate))
    await admin.approve(number)
    await eventually("no candidate", lambda: len(previews) == 0)
    assert await is_deleted(cluster.alpha.node, str(candidate))


async def test_a_candidate_that_another_account_has_named_is_not_deleted(cluster: AlphaCluster) -> None:
    """The map of candidates has several writers: one of them may name any map of Alpha's."""
    data, client = cluster.alpha.data, cluster.alpha.sentinel
    victim = data.stacks_group.create_map({"kept": True})
    context = cluster.sentinel._context
    previews = await context.node.load_map((await client.open()).previews.id)
    previews.set(preview_key(7, "abc"), victim.id)
    await context.node.flush()
    await cluster.alpha.node.catch_up()
    await client.withdraw_previews(7)
    assert preview_key(7, "abc") not in (await client.open()).previews
    assert not victim.deleted


async def test_candidates_are_requested_again_when_the_sentinel_has_replaced_their_map(
    cluster: AlphaCluster, servers: Servers, admin: Client
) -> None:
    await push(servers, "worker")
    cluster.orders.previewing = False
    number = await admin.create("examples/worker:v1")
    previews = (await cluster.alpha.sentinel.open()).previews
    await eventually("the candidate", lambda: len(previews) == 1)
    await cluster.replace_previews()
    cluster.orders.previewing = True
    await admin.approve(number)
    await cluster.has_status("worker", "running")
