"""Which values are evicted from memory: none that are in use or needed by these; evicted values load again."""

import asyncio
import gc

import pytest
from support.jazz_controlled_nodes import DetachedNode, exchange, exchange_during
from support.jazz_nodes import content

from reside.jazz import CoMap, NodeClosed, WritePolicy
from reside.jazz.memory.eviction import evictable
from reside.jazz.memory.readiness import Absent, missing_for
from reside.jazz.node.runtime import _DELETED
from reside.jazz.wire.crypto import Agent, new_agent_secret
from reside.jazz.wire.header import account_header, branch_header, owned_header

pytestmark = pytest.mark.anyio


async def _loaded(hub: DetachedNode, reader: DetachedNode, value: CoMap) -> CoMap:
    return await exchange_during(hub, reader, reader.load_map(value.id))


async def test_the_source_of_a_branch_in_use_is_not_evicted(hub: DetachedNode, writer: DetachedNode) -> None:
    value = writer.create_group().create_map({"x": 1})
    branch = await value.branch("draft")
    await exchange(hub, writer)
    writer._host.objects.release()
    del value
    _sweep(writer)
    assert content(branch) == {"x": 1}


async def test_a_branch_whose_source_the_server_does_not_have_is_not_found(writer: DetachedNode) -> None:
    owner = writer.create_group().id
    header = branch_header(owned_header("comap", owner, 0), owner, "draft")
    core, store = writer._host.store.core(header.co_id), writer._host.store
    store.set_header(core, header)
    missing = missing_for(store, core, connected=False)
    assert isinstance(missing, list)
    assert [item.co_id for item in missing] == [header.source]
    missing[0].absent = True
    assert missing_for(store, core, connected=False) == Absent(
        missing[0], f"its source {header.source} is not on the server"
    )


def _sweep(node: DetachedNode) -> None:
    node._host.objects.release()
    node._runtime._evict()


async def test_dependencies_of_values_in_use_are_not_evicted(hub: DetachedNode, writer: DetachedNode) -> None:
    parent, child = writer.create_group(), writer.create_group()
    await parent.add_member("everyone", "reader")
    await child.extend(parent)
    one, two = child.create_map({"x": 1}), child.create_map({"x": 2})
    await exchange(hub, writer)
    reader = DetachedNode()
    held, let_go = await _loaded(hub, reader, one), await _loaded(hub, reader, two)
    del let_go
    _sweep(reader)
    assert reader._host.store.cores.keys() >= {one.id, child.id, parent.id, writer.account_id}
    assert two.id not in reader._host.store.cores
    assert two.id not in reader._host.store.core(child.id).dependants
    assert content(held) == {"x": 1}
    del held
    _sweep(reader)
    assert reader._host.store.cores == {}


async def test_an_evicted_value_can_be_loaded_again_with_later_writes(hub: DetachedNode, writer: DetachedNode) -> None:
    group = writer.create_group()
    await group.add_member("everyone", "reader")
    value = group.create_map({"x": 1})
    await exchange(hub, writer)
    reader = DetachedNode()
    await _loaded(hub, reader, value)
    _sweep(reader)
    value.set("x", 2)
    await exchange(hub, writer)
    await exchange(hub, reader)
    assert value.id not in reader._host.store.cores
    assert content(await _loaded(hub, reader, value)) == {"x": 2}


async def test_a_value_with_unacknowledged_writes_is_not_evicted(hub: DetachedNode, writer: DetachedNode) -> None:
    co_id = writer.create_group().create_map({"x": 1}).id
    _sweep(writer)
    assert co_id in writer._host.store.cores
    await exchange(hub, writer)
    _sweep(writer)
    assert co_id not in writer._host.store.cores
    assert writer.account.name == "writer"


async def test_a_value_that_is_being_loaded_is_not_evicted(hub: DetachedNode, writer: DetachedNode) -> None:
    value = writer.create_group().create_map({"x": 1})
    await exchange(hub, writer)
    reader = DetachedNode()
    loading = asyncio.create_task(reader.load_map(value.id))
    await asyncio.sleep(0)
    for message in reader.take():
        hub.give(message)
    (whole,) = (message for message in hub.take() if message["action"] == "content")
    reader.give(whole)
    await asyncio.sleep(0)
    needed = set(reader._host.store.cores)
    assert needed >= {value.id, value.group.id}
    _sweep(reader)
    assert set(reader._host.store.cores) == needed
    loading.cancel()


async def test_a_watched_value_is_not_evicted(hub: DetachedNode, writer: DetachedNode) -> None:
    group = writer.create_group()
    await group.add_member("everyone", "reader")
    value = group.create_map({"x": 1})
    await exchange(hub, writer)
    reader = DetachedNode()
    heard: list[CoMap] = []
    unsubscribe = (await _loaded(hub, reader, value)).on_change(heard.append)
    _sweep(reader)
    value.set("x", 2)
    await exchange(hub, writer)
    reader.cut()
    reader.connect()
    await exchange(hub, reader)
    assert [item["x"] for item in heard] == [2]
    unsubscribe()
    del unsubscribe
    heard.clear()
    _sweep(reader)
    assert reader.statistics.values == 0


async def test_a_node_evicts_values_automatically(hub: DetachedNode, writer: DetachedNode) -> None:
    group = writer.create_group()
    for number in range(1_200):
        group.create_map({"number": number})
        if number % 100 == 0:
            await exchange(hub, writer)
    await exchange(hub, writer)
    group.create_map({})
    assert writer.statistics.values < 1_000


async def test_a_node_with_a_policy_evicts_accounts_and_unused_values_but_no_groups(
    hub: DetachedNode, writer: DetachedNode
) -> None:
    group = writer.create_group()
    await group.add_member("everyone", "reader")
    value = group.create_map({"x": 1})
    await exchange(hub, writer)
    reader = DetachedNode(policy=WritePolicy(refuse_after_removal=True))
    await _loaded(hub, reader, value)
    strangers = [account_header(Agent.from_secret(new_agent_secret()).agent_id) for _ in range(1_000)]
    for header in strangers:
        reader.give({"action": "content", "id": header.co_id, "priority": 0, "header": dict(header.raw), "new": {}})
    await asyncio.sleep(0)
    assert reader.statistics.values < 600
    _sweep(reader)
    assert reader._host.store.cores.keys() == {group.id, writer.account_id}


async def test_a_node_with_a_policy_keeps_the_values_that_it_has_written(
    hub: DetachedNode, writer: DetachedNode
) -> None:
    """A server that was restored from a backup gets them from here."""
    node = DetachedNode(policy=WritePolicy(refuse_after_removal=True))
    await exchange_during(hub, node, node.register("careful"))
    co_id = node.create_group().create_map({"x": 1}).id
    await exchange(hub, node)
    _sweep(node)
    assert co_id in node._host.store.cores


async def test_a_node_with_a_policy_evicts_what_it_has_written_and_released(
    hub: DetachedNode, writer: DetachedNode
) -> None:
    node = DetachedNode(policy=WritePolicy(refuse_after_removal=True))
    await exchange_during(hub, node, node.register("careful"))
    value = node.create_group().create_map({"x": 0})
    value.release()
    co_id, sessions = value.id, set(node._host.writer._exchange.own_sessions)
    del value
    for number in range(1, 4):
        _sweep(node)
        assert co_id in node._host.store.cores, "the server does not have it yet"
        await exchange(hub, node)
        _sweep(node)
        assert co_id not in node._host.store.cores
        assert node._host.writer._exchange.own_sessions == sessions
        again = await exchange_during(hub, node, node.load_map(co_id))
        again.release()
        assert content(again) == {"x": number - 1}
        again.set("x", number)
        del again
    await exchange(hub, node)
    core = node._host.store.cores[co_id]
    assert sorted(core.counts().values()) == [1, 1, 1, 1], "each time in a new session"
    assert core.counts() == hub._host.store.core(co_id).counts()


async def test_a_deleted_value_that_was_released_is_evicted_with_its_session(hub: DetachedNode) -> None:
    node = DetachedNode(policy=WritePolicy(refuse_after_removal=True))
    await exchange_during(hub, node, node.register("careful"))
    value = node.create_group().create_map({"x": 0})
    value.release()
    sessions = set(node._host.writer._exchange.own_sessions)
    value.destroy()
    co_id = value.id
    del value
    await exchange(hub, node)
    _sweep(node)
    assert co_id not in node._host.store.cores
    assert node._host.writer._exchange.own_sessions == sessions


async def test_a_node_tells_of_each_new_connection(writer: DetachedNode) -> None:
    waiting = asyncio.create_task(writer.until_reconnected())
    await asyncio.sleep(0)
    writer.cut()
    await asyncio.sleep(0)
    assert not waiting.done()
    writer.connect()
    await waiting
    ended = asyncio.create_task(writer.until_reconnected())
    await asyncio.sleep(0)
    await writer.close()
    with pytest.raises(NodeClosed):
        await ended


def test_an_unused_value_leaves_no_dependency() -> None:
    assert evictable(DetachedNode()._host.store, []) == []


async def test_values_that_a_view_has_resolved_are_not_evicted(hub: DetachedNode, writer: DetachedNode) -> None:
    """What a typed view has resolved stays loaded as long as the view exists."""
    group = writer.create_group()
    parent, child = group.create_map({}), group.create_map({"x": 1})
    co_id = child.id
    parent.set("child", co_id)
    await exchange(hub, writer)
    parent._hold(".child", child)
    del child
    _sweep(writer)
    found = writer.find(co_id)
    assert found is not None
    assert content(found) == {"x": 1}
    del found, parent
    gc.collect()
    _sweep(writer)
    assert writer.find(co_id) is None


async def test_a_new_object_of_a_value_shows_the_content_that_was_seen_before(
    hub: DetachedNode, writer: DetachedNode
) -> None:
    group = writer.create_group()
    await group.add_member("everyone", "reader")
    made = (group.create_map({"x": 1}), group.create_list([1]), group.create_feed(), group.create_text("a"))
    made[2].push(1)
    await exchange(hub, writer)
    read = [(value.id, value._refresh()) for value in made]
    ids = [co_id for co_id, _ in read]
    del made
    writer._host.objects.release()
    gc.collect()
    assert not set(ids) & set(writer._host.objects.held())
    again = [await writer.load(co_id) for co_id in ids]
    assert [content(value) for value in again[:2]] == [{"x": 1}, [1]]
    assert [entry.value for entry in again[2]] == [1]
    assert str(again[3]) == "a"


async def test_a_group_that_no_longer_extends_another_is_not_referenced_there(
    hub: DetachedNode, writer: DetachedNode
) -> None:
    parent, child = writer.create_group(), writer.create_group()
    await child.extend(parent)
    assert list(child.parents()) == [parent.id]
    step = [{"op": "set", "key": writer.account_id, "value": "reader"}]
    made_at = child._state.parents[parent.id][0][0] - 1
    writer.transact(child.id, step, private=False, made_at=made_at)
    assert child.parents() == {}
    await exchange(hub, writer)
    co_id = child.id
    del child
    _sweep(writer)
    assert co_id not in writer._host.store.cores
    assert co_id not in writer._host.store.core(parent.id).dependants
    await parent.add_member("everyone", "reader")
    assert parent.role_of("everyone") == "reader"


async def test_values_that_this_node_deleted_are_evicted_once_the_server_knows(
    hub: DetachedNode, writer: DetachedNode
) -> None:
    group = writer.create_group()
    kept, last = group.create_map({"x": 0}), group.create_map({"x": 0})
    for number in range(_DELETED - 1):
        group.create_map({"x": number}).destroy()
    await exchange(hub, writer)
    gc.collect()
    assert len([core for core in writer._host.store.cores.values() if core.deleted]) == _DELETED - 1
    last.destroy()
    assert len(writer._host.store.cores) > _DELETED
    await exchange(hub, writer)
    gc.collect()
    remaining = [core.co_id for core in writer._host.store.cores.values() if core.deleted]
    assert remaining == [last.id], "the program refers to it"
    assert content(kept) == {"x": 0}
    assert await exchange_during(hub, writer, writer.load_map(kept.id)) is kept
