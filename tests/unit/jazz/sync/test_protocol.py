"""The sync protocol as a state machine: which messages are sent for which are received."""

import asyncio
import copy
from typing import Any

import pytest
from support.jazz_controlled_nodes import DetachedNode, exchange, exchange_during, registered
from support.jazz_nodes import content
from unit.jazz.messages import core_of, public_map, whole_of


def _actions(messages: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(message["action"], message["id"]) for message in messages]


@pytest.mark.anyio
async def test_a_new_value_is_sent_immediately_after_its_dependencies(hub: DetachedNode, writer: DetachedNode) -> None:
    group = writer.create_group()
    value = group.create_map({"x": 1})
    sent = writer.take()
    assert _actions(sent) == [("content", group.id), ("content", value.id)]
    assert sent[0]["priority"] == 0
    assert len(sent[0]["new"][writer._host.writer.session]["newTransactions"]) == 4
    assert sent[1]["header"]["ruleset"] == {"type": "ownedByGroup", "group": group.id}
    assert hub.take() == []


@pytest.mark.anyio
async def test_writes_of_one_turn_to_one_value_share_a_message_and_keep_the_order_of_values(
    writer: DetachedNode,
) -> None:
    group = writer.create_group()
    one, two = group.create_map({"x": 1}), group.create_map({"x": 1})
    writer.take()
    one.set("a", 1)
    one.set("b", 2)
    two.set("a", 1)
    one.set("c", 3)
    sent = writer.take()
    assert _actions(sent) == [("content", one.id), ("content", two.id), ("content", one.id)]
    batches = [message["new"][writer._host.writer.session] for message in sent]
    assert [(batch["after"], len(batch["newTransactions"])) for batch in batches] == [(1, 2), (1, 1), (3, 1)]
    assert all("header" not in message for message in sent)


@pytest.mark.anyio
async def test_nothing_is_sent_twice_while_an_acknowledgement_is_in_flight(writer: DetachedNode) -> None:
    value = writer.create_group().create_map({"x": 1})
    writer.take()
    value.set("y", 2)
    writer.take()
    writer.give({"action": "known", "id": value.id, "header": True, "sessions": {writer._host.writer.session: 1}})
    assert writer.take() == []


@pytest.mark.anyio
async def test_a_known_state_correction_replaces_the_assumed_known_state(writer: DetachedNode) -> None:
    value = writer.create_group().create_map({"x": 1})
    value.set("y", 2)
    writer.take()
    correction = {"action": "known", "id": value.id, "header": False, "sessions": {}, "isCorrection": True}
    writer.give(correction)
    (message,) = writer.take()
    assert message["header"]
    assert message["new"][writer._host.writer.session]["after"] == 0
    assert len(message["new"][writer._host.writer.session]["newTransactions"]) == 2


@pytest.mark.anyio
async def test_flush_waits_for_all_acknowledgements(hub: DetachedNode, writer: DetachedNode) -> None:
    value = writer.create_group().create_map({"x": 1})
    flushing = asyncio.create_task(writer.flush())
    await asyncio.sleep(0)
    sent = writer.take()
    for message in sent[:-1]:
        hub.give(message)
    for message in hub.take():
        writer.give(message)
    await asyncio.sleep(0)
    assert not flushing.done()
    writer.give({"action": "known", "id": value.id, "header": True, "sessions": {writer._host.writer.session: 1}})
    await flushing
    await writer.flush()


@pytest.mark.anyio
async def test_a_reconnect_loads_everything_after_its_dependencies_and_sends_missing_content(
    hub: DetachedNode, writer: DetachedNode
) -> None:
    value = await public_map(writer, hub, {"x": 1})
    writer.cut()
    value.set("y", 2)
    new = value.group.create_map({"new": True})
    assert writer.take() == []
    writer.connect()
    asked = writer.take()
    assert {message["action"] for message in asked} == {"load"}
    order = [message["id"] for message in asked]
    assert order.index(writer.account_id) < order.index(value.group.id) < order.index(value.id) < order.index(new.id)
    for message in asked:
        hub.give(message)
    for message in hub.take():
        writer.give(message)
    sent = {message["id"]: message for message in writer.take()}
    assert set(sent) == {value.id, new.id}
    assert sent[value.id]["new"][writer._host.writer.session]["after"] == 1
    assert "header" in sent[new.id]


@pytest.mark.anyio
async def test_a_reconnect_answered_with_content_still_sends_the_own_writes(
    hub: DetachedNode, writer: DetachedNode
) -> None:
    """The response contains only what is new for us; the server has the rest of ours."""
    group = writer.create_group()
    await group.add_member("everyone", "writer")
    value = group.create_map({"x": 1})
    await exchange(hub, writer)
    other = await registered(hub, "other")
    theirs = await exchange_during(hub, other, other.load_map(value.id))
    writer.cut()
    value.set("mine", 1)
    theirs.set("theirs", 2)
    await exchange(hub, other)
    writer.connect()
    await exchange(hub, writer)
    assert content(value) == {"x": 1, "mine": 1, "theirs": 2}
    assert hub._host.store.core(value.id).counts() == core_of(writer, value).counts()
    await writer.flush()


@pytest.mark.anyio
async def test_a_load_by_the_server_is_answered(writer: DetachedNode) -> None:
    value = writer.create_group().create_map({"x": 1})
    writer.take()
    writer.give({"action": "load", "id": value.id, "header": False, "sessions": {}})
    writer.give({"action": "load", "id": value.id, "header": True, "sessions": {writer._host.writer.session: 1}})
    absent = "co_zPfEHWFVK3AzWcsjBoGXmjTEAnLp"
    writer.give({"action": "load", "id": absent, "header": False, "sessions": {}})
    first, second, third = writer.take()
    assert first["action"] == "content"
    assert second == {"action": "known", "id": value.id, "header": True, "sessions": {writer._host.writer.session: 1}}
    assert third == {"action": "known", "id": absent, "header": False, "sessions": {}}


@pytest.mark.anyio
async def test_content_without_a_header_is_requested_completely_if_needed_and_dropped_otherwise(
    hub: DetachedNode, writer: DetachedNode
) -> None:
    """The server assumes that we have the header: we evicted the value, or the server is wrong."""
    value = await public_map(writer, hub, {"x": 1})
    message = whole_of(hub, value)
    del message["header"]
    reader = DetachedNode()
    reader.give(message)
    assert reader.take() == []
    assert value.id not in reader._host.store.cores
    loading = asyncio.create_task(reader.load_map(value.id))
    await asyncio.sleep(0)
    reader.take()
    reader.give(message)
    expected = {"action": "known", "id": value.id, "header": False, "sessions": {}, "isCorrection": True}
    assert reader.take() == [expected]
    loading.cancel()


@pytest.mark.anyio
async def test_a_gap_is_corrected_a_few_times_and_an_overlap_is_dropped(
    hub: DetachedNode, writer: DetachedNode
) -> None:
    value = await public_map(writer, hub, {"x": 1})
    value.set("y", 2)
    value.set("z", 3)
    await exchange(hub, writer)
    whole = whole_of(hub, value)
    gap = copy.deepcopy(whole)
    batch = gap["new"][writer._host.writer.session]
    batch["after"], batch["newTransactions"] = 2, batch["newTransactions"][2:]
    reader = DetachedNode()
    await exchange_during(hub, reader, reader.load_group(value.group.id))
    for attempt in range(5):
        reader.give(gap)
        sent = [message for message in reader.take() if message["id"] == value.id]
        assert ("isCorrection" in sent[-1]) == (attempt < 3)
    reader.give(whole)
    reader.give(whole)
    reader.give(gap)
    assert core_of(reader, value).counts() == {writer._host.writer.session: 3}


@pytest.mark.anyio
async def test_content_of_an_unknown_author_waits_for_the_account(hub: DetachedNode, writer: DetachedNode) -> None:
    author, value = await registered(hub, "author"), await public_map(writer, hub, {"x": 1})
    await value.group.add_member("everyone", "writer")
    await exchange(hub, writer)
    (await exchange_during(hub, author, author.load_map(value.id))).set("x", 2)
    await exchange(hub, author)
    reader = DetachedNode()
    await exchange_during(hub, reader, reader.load_group(value.group.id))
    reader.give(whole_of(hub, value))
    asked = reader.take()
    assert _actions(asked) == [("load", author.account_id)]
    assert core_of(reader, value).counts() == {writer._host.writer.session: 1}
    hub.give(*asked)
    (account,) = hub.take()
    reader.give(account)
    assert ("known", value.id) in _actions(reader.take())
    assert core_of(reader, value).counts() == {writer._host.writer.session: 1, author._host.writer.session: 1}


@pytest.mark.anyio
async def test_content_of_an_unknown_group_waits_for_the_group(hub: DetachedNode, writer: DetachedNode) -> None:
    value = await public_map(writer, hub, {"x": 1})
    reader = DetachedNode()
    reader.give(whole_of(hub, value))
    asked = reader.take()
    assert _actions(asked) == [("load", value.group.id)]
    assert core_of(reader, value).counts() == {}
    await exchange(hub, reader)
    hub.give(*asked)
    await exchange(hub, reader)
    assert core_of(reader, value).counts() == {writer._host.writer.session: 1}


@pytest.mark.anyio
async def test_content_that_is_sent_twice_while_it_waits_for_its_author_is_kept_once(
    hub: DetachedNode, writer: DetachedNode
) -> None:
    value = await public_map(writer, hub, {"x": 1})
    reader = DetachedNode()
    for _ in range(3):
        reader.give(whole_of(hub, value))
    assert [len(batches) for batches in core_of(reader, value).deferred.values()] == [1]


@pytest.mark.anyio
async def test_ids_that_only_the_server_names_use_no_memory(writer: DetachedNode) -> None:
    writer.take()
    before = len(writer._host.store.cores), len(writer._runtime._servers.connections[0].sync._known)
    for number in range(50):
        co_id = "co_z" + "1" * number + "2"
        writer.give({"action": "load", "id": co_id, "header": False, "sessions": {}})
        writer.give({"action": "known", "id": co_id, "header": False, "sessions": {}})
        assert writer.take() == [{"action": "known", "id": co_id, "header": False, "sessions": {}}]
    assert (len(writer._host.store.cores), len(writer._runtime._servers.connections[0].sync._known)) == before


@pytest.mark.anyio
async def test_a_load_waits_for_all_announced_parts(hub: DetachedNode, writer: DetachedNode) -> None:
    value = await public_map(writer, hub, {"x": 1})
    whole = whole_of(hub, value)
    reader = DetachedNode()
    loading = asyncio.create_task(reader.load_map(value.id))
    await asyncio.sleep(0)
    asked = reader.take()
    assert _actions(asked) == [("load", value.id)]
    reader.give(whole | {"expectContentUntil": {writer._host.writer.session: 2}})
    for _ in range(3):
        await exchange(hub, reader)
    assert not loading.done()
    value.set("y", 2)
    await exchange(hub, writer)
    batch = whole_of(hub, value)["new"][writer._host.writer.session]
    rest = batch | {"after": 1, "newTransactions": batch["newTransactions"][1:]}
    reader.give({"action": "content", "id": value.id, "priority": 3, "new": {writer._host.writer.session: rest}})
    assert content(await loading) == {"x": 1, "y": 2}
