"""The sync protocol as a state machine: what is sent for what is received, and what forged messages achieve."""

import asyncio
import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.jazz_nodes import content
from support.jazz_wire import Loose, connected_to, registered

from reside.jazz import CoMap, Credentials
from reside.jazz.covalue import Core


@pytest.fixture
async def hub() -> Loose:
    """A node that plays the server: it answers loads and acknowledges content."""
    return Loose()


@pytest.fixture
async def writer(hub: Loose) -> Loose:
    """A registered node."""
    return await registered(hub, "writer")


def _actions(messages: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(message["action"], message["id"]) for message in messages]


def _core(node: Loose, value: CoMap) -> Core:
    return node.store.core(value.id)


async def _public_map(writer: Loose, hub: Loose, init: dict[str, Any]) -> CoMap:
    group = writer.create_group()
    await group.add_member("everyone", "reader")
    value = group.create_map(init)
    await connected_to(hub, writer)
    return value


def _whole(node: Loose, value: CoMap) -> dict[str, Any]:
    """The content message of a whole value, as a server would send it."""
    node.take()
    node.give({"action": "load", "id": value.id, "header": False, "sessions": {}})
    (message,) = (item for item in node.take() if item["action"] == "content")
    return message


@pytest.mark.anyio
async def test_a_new_value_is_sent_at_once_with_all_that_it_needs_before(hub: Loose, writer: Loose) -> None:
    group = writer.create_group()
    value = group.create_map({"x": 1})
    sent = writer.take()
    assert _actions(sent) == [("content", group.id), ("content", value.id)]
    assert sent[0]["priority"] == 0
    assert len(sent[0]["new"][writer.writer.session]["newTransactions"]) == 4
    assert sent[1]["header"]["ruleset"] == {"type": "ownedByGroup", "group": group.id}
    assert hub.take() == []


@pytest.mark.anyio
async def test_writes_of_one_turn_to_one_value_share_a_message_and_keep_the_order_of_values(writer: Loose) -> None:
    group = writer.create_group()
    one, two = group.create_map({"x": 1}), group.create_map({"x": 1})
    writer.take()
    one.set("a", 1)
    one.set("b", 2)
    two.set("a", 1)
    one.set("c", 3)
    sent = writer.take()
    assert _actions(sent) == [("content", one.id), ("content", two.id), ("content", one.id)]
    batches = [message["new"][writer.writer.session] for message in sent]
    assert [(batch["after"], len(batch["newTransactions"])) for batch in batches] == [(1, 2), (1, 1), (3, 1)]
    assert all("header" not in message for message in sent)


@pytest.mark.anyio
async def test_nothing_is_sent_twice_while_an_acknowledgement_is_on_its_way(writer: Loose) -> None:
    value = writer.create_group().create_map({"x": 1})
    writer.take()
    value.set("y", 2)
    writer.take()
    writer.give({"action": "known", "id": value.id, "header": True, "sessions": {writer.writer.session: 1}})
    assert writer.take() == []


@pytest.mark.anyio
async def test_a_correction_replaces_what_was_believed(writer: Loose) -> None:
    value = writer.create_group().create_map({"x": 1})
    value.set("y", 2)
    writer.take()
    correction = {"action": "known", "id": value.id, "header": False, "sessions": {}, "isCorrection": True}
    writer.give(correction)
    (message,) = writer.take()
    assert message["header"]
    assert message["new"][writer.writer.session]["after"] == 0
    assert len(message["new"][writer.writer.session]["newTransactions"]) == 2


@pytest.mark.anyio
async def test_flush_waits_for_all_acknowledgements(hub: Loose, writer: Loose) -> None:
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
    writer.give({"action": "known", "id": value.id, "header": True, "sessions": {writer.writer.session: 1}})
    await flushing
    await writer.flush()


@pytest.mark.anyio
async def test_a_reconnect_asks_for_everything_after_what_it_needs_and_sends_what_is_lacking(
    hub: Loose, writer: Loose
) -> None:
    value = await _public_map(writer, hub, {"x": 1})
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
    assert sent[value.id]["new"][writer.writer.session]["after"] == 1
    assert "header" in sent[new.id]


@pytest.mark.anyio
async def test_a_reconnect_answered_with_content_still_sends_the_own_writes(hub: Loose, writer: Loose) -> None:
    """The answer tells only what is new for us; what the server has of ours is taken as it was."""
    group = writer.create_group()
    await group.add_member("everyone", "writer")
    value = group.create_map({"x": 1})
    await connected_to(hub, writer)
    other = await registered(hub, "other")
    loading = asyncio.create_task(other.load_map(value.id))
    while not loading.done():
        await connected_to(hub, other)
    writer.cut()
    value.set("mine", 1)
    (await loading).set("theirs", 2)
    await connected_to(hub, other)
    writer.connect()
    await connected_to(hub, writer)
    assert content(value) == {"x": 1, "mine": 1, "theirs": 2}
    assert hub.store.core(value.id).counts() == _core(writer, value).counts()
    await writer.flush()


@pytest.mark.anyio
async def test_a_load_by_the_server_is_answered(writer: Loose) -> None:
    value = writer.create_group().create_map({"x": 1})
    writer.take()
    writer.give({"action": "load", "id": value.id, "header": False, "sessions": {}})
    writer.give({"action": "load", "id": value.id, "header": True, "sessions": {writer.writer.session: 1}})
    absent = "co_zPfEHWFVK3AzWcsjBoGXmjTEAnLp"
    writer.give({"action": "load", "id": absent, "header": False, "sessions": {}})
    first, second, third = writer.take()
    assert first["action"] == "content"
    assert second == {"action": "known", "id": value.id, "header": True, "sessions": {writer.writer.session: 1}}
    assert third == {"action": "known", "id": absent, "header": False, "sessions": {}}


@pytest.mark.anyio
async def test_content_without_a_header_is_asked_for_whole_if_wanted_and_dropped_otherwise(
    hub: Loose, writer: Loose
) -> None:
    """The server believes that we have the header: we dropped the value, or it is in error."""
    value = await _public_map(writer, hub, {"x": 1})
    message = _whole(hub, value)
    del message["header"]
    reader = Loose()
    reader.give(message)
    assert reader.take() == []
    assert value.id not in reader.store.cores
    loading = asyncio.create_task(reader.load_map(value.id))
    await asyncio.sleep(0)
    reader.take()
    reader.give(message)
    expected = {"action": "known", "id": value.id, "header": False, "sessions": {}, "isCorrection": True}
    assert reader.take() == [expected]
    loading.cancel()


@pytest.mark.anyio
async def test_a_gap_is_corrected_a_few_times_and_an_overlap_is_dropped(hub: Loose, writer: Loose) -> None:
    value = await _public_map(writer, hub, {"x": 1})
    value.set("y", 2)
    value.set("z", 3)
    await connected_to(hub, writer)
    whole = _whole(hub, value)
    gap = copy.deepcopy(whole)
    batch = gap["new"][writer.writer.session]
    batch["after"], batch["newTransactions"] = 2, batch["newTransactions"][2:]
    reader = Loose()
    await _know(reader, hub, writer)
    for attempt in range(5):
        reader.give(gap)
        sent = [message for message in reader.take() if message["id"] == value.id]
        assert ("isCorrection" in sent[-1]) == (attempt < 3)
    reader.give(whole)
    reader.give(whole)
    reader.give(gap)
    assert _core(reader, value).counts() == {writer.writer.session: 3}


async def _know(reader: Loose, hub: Loose, writer: Loose) -> None:
    """Gives a node the account of another."""
    loading = asyncio.create_task(reader.load_account(writer.account_id))
    while not loading.done():
        await connected_to(hub, reader)
    await loading
    reader.take()


@pytest.mark.anyio
async def test_content_of_an_unknown_author_waits_for_the_account(hub: Loose, writer: Loose) -> None:
    value = await _public_map(writer, hub, {"x": 1})
    reader = Loose()
    reader.give(_whole(hub, value))
    asked = reader.take()
    assert _actions(asked) == [("load", writer.account_id)]
    assert _core(reader, value).counts() == {}
    hub.give(*asked)
    (account,) = hub.take()
    reader.give(account)
    assert ("known", value.id) in _actions(reader.take())
    assert _core(reader, value).counts() == {writer.writer.session: 1}


@pytest.mark.anyio
async def test_what_is_sent_again_while_it_waits_for_its_author_is_kept_once(hub: Loose, writer: Loose) -> None:
    value = await _public_map(writer, hub, {"x": 1})
    reader = Loose()
    for _ in range(3):
        reader.give(_whole(hub, value))
    assert [len(batches) for batches in _core(reader, value).parked.values()] == [1]


@pytest.mark.anyio
async def test_nothing_is_kept_of_ids_that_only_the_server_names(writer: Loose) -> None:
    writer.take()
    before = len(writer.store.cores), len(writer._sync._peers)
    for number in range(50):
        co_id = "co_z" + "1" * number + "2"
        writer.give({"action": "load", "id": co_id, "header": False, "sessions": {}})
        writer.give({"action": "known", "id": co_id, "header": False, "sessions": {}})
        assert writer.take() == [{"action": "known", "id": co_id, "header": False, "sessions": {}}]
    assert (len(writer.store.cores), len(writer._sync._peers)) == before


@pytest.mark.anyio
async def test_a_load_waits_for_all_announced_pieces(hub: Loose, writer: Loose) -> None:
    value = await _public_map(writer, hub, {"x": 1})
    whole = _whole(hub, value)
    reader = Loose()
    loading = asyncio.create_task(reader.load_map(value.id))
    await asyncio.sleep(0)
    asked = reader.take()
    assert _actions(asked) == [("load", value.id)]
    reader.give(whole | {"expectContentUntil": {writer.writer.session: 2}})
    for _ in range(3):
        await connected_to(hub, reader)
    assert not loading.done()
    value.set("y", 2)
    await connected_to(hub, writer)
    batch = _whole(hub, value)["new"][writer.writer.session]
    rest = batch | {"after": 1, "newTransactions": batch["newTransactions"][1:]}
    reader.give({"action": "content", "id": value.id, "priority": 3, "new": {writer.writer.session: rest}})
    assert content(await loading) == {"x": 1, "y": 2}


FORGERIES: dict[str, Any] = {
    "signature": lambda batch: batch | {"lastSignature": "signature_z" + "1" * 64},
    "endless signature": lambda batch: batch | {"lastSignature": "signature_z" + "z" * 1_000_000},
    "signature of another kind": lambda batch: batch | {"lastSignature": "nonsense"},
    "changed time": lambda batch: _changed(batch, madeAt=1),
    "changed text": lambda batch: _changed(batch, encryptedChanges="encrypted_UAAAA"),
    "added meta": lambda batch: _changed(batch, meta="encrypted_UAAAA"),
    "dropped transaction": lambda batch: batch | {"newTransactions": batch["newTransactions"][1:]},
    "surrogates": lambda batch: _changed(batch, encryptedChanges="encrypted_U\ud800"),
}


def _changed(batch: dict[str, Any], **fields: Any) -> dict[str, Any]:
    first, *rest = batch["newTransactions"]
    return batch | {"newTransactions": [first | fields, *rest]}


@pytest.mark.anyio
@pytest.mark.parametrize("kind", FORGERIES)
async def test_what_is_not_signed_is_dropped_and_the_rest_goes_on(kind: str, hub: Loose, writer: Loose) -> None:
    value = await _public_map(writer, hub, {"x": 1})
    value.set("y", 2)
    await connected_to(hub, writer)
    whole = _whole(hub, value)
    forged = copy.deepcopy(whole)
    forged["new"][writer.writer.session] = FORGERIES[kind](forged["new"][writer.writer.session])
    reader = Loose()
    await _know(reader, hub, writer)
    reader.give(forged)
    assert _core(reader, value).counts() == {}
    assert _core(reader, value).header is not None
    other = await _public_map(writer, hub, {"other": 1})
    loading = asyncio.create_task(reader.load_map(other.id))
    while not loading.done():
        await connected_to(hub, reader)
    assert content(await loading) == {"other": 1}
    reader.connect()
    reader.give(whole)
    assert _core(reader, value).counts() == {writer.writer.session: 2}


@pytest.mark.anyio
async def test_a_header_that_is_not_the_ids_is_dropped(hub: Loose, writer: Loose) -> None:
    """Otherwise a server could give a value another owner."""
    value = await _public_map(writer, hub, {"x": 1})
    forged = _whole(hub, value)
    forged["header"]["ruleset"]["group"] = "co_zPfEHWFVK3AzWcsjBoGXmjTEAnLp"
    reader = Loose()
    reader.give(forged)
    assert _core(reader, value).header is None


@pytest.mark.anyio
async def test_a_session_in_anothers_name_does_not_verify(hub: Loose, writer: Loose) -> None:
    value = await _public_map(writer, hub, {"x": 1})
    other = await registered(hub, "other")
    forged = _whole(hub, value)
    session = other.writer.session
    forged["new"] = {session: forged["new"][writer.writer.session]}
    reader = Loose()
    await _know(reader, hub, writer)
    await _know(reader, hub, other)
    reader.give(forged)
    assert _core(reader, value).counts() == {}
    assert session in _core(reader, value).rejected


ABSENT = "co_zPfEHWFVK3AzWcsjBoGXmjTEAnLp"
DEEP = "[" * 100_000


@pytest.mark.anyio
@pytest.mark.parametrize(
    "frame",
    [
        "",
        "\n\n",
        "{",
        "[]",
        "7",
        '"text"',
        "null",
        DEEP,
        '{"type":"ping","time":1}',
        {"action": "unknown"},
        {"action": "load"},
        {"action": "known", "id": ABSENT},
        {"action": "known", "id": ABSENT, "header": False, "sessions": {"x": -1}},
        {"action": "known", "id": ABSENT, "header": False, "sessions": {"x": "many"}},
        {"action": "known", "id": 'co_z"quote', "header": False, "sessions": {}},
        {"action": "known", "id": "co_z" + "1" * 1_000_000, "header": False, "sessions": {}},
        {"action": "content", "id": ABSENT},
        {"action": "content", "id": ABSENT, "header": [], "new": {}},
        {"action": "content", "id": ABSENT, "header": {"meta": {}, "uniqueness": 1}, "new": {}},
        {"action": "done", "id": ABSENT},
        {"action": "reconcile-ack", "id": "x"},
    ],
)
async def test_a_malformed_frame_does_no_harm(frame: Any, hub: Loose, writer: Loose) -> None:
    writer.give(frame)
    value = await _public_map(writer, hub, {"x": 1})
    assert content(value) == {"x": 1}
    assert hub.store.core(value.id).counts() == {writer.writer.session: 1}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@pytest.fixture(scope="module")
def genuine() -> list[dict[str, Any]]:
    """All messages of an account, a group and a map, as a server sends them."""

    async def make() -> list[dict[str, Any]]:
        hub = Loose()
        writer = await registered(hub, "writer")
        value = await _public_map(writer, hub, {"x": 1})
        for co_id in (writer.account_id, value.group.id, value.id):
            hub.give({"action": "load", "id": co_id, "header": False, "sessions": {}})
        return [message for message in hub.take() if message["action"] == "content"]

    return asyncio.run(make())


def _damage(data: st.DataObject, message: Any) -> None:
    """Replaces one part of a message, anywhere in it, by some other JSON."""
    parent, key = message, data.draw(st.sampled_from(sorted(message)))
    while isinstance(parent[key], dict | list) and parent[key] and data.draw(st.integers(0, 5)):
        parent = parent[key]
        key = data.draw(st.sampled_from(sorted(parent) if isinstance(parent, dict) else range(len(parent))))
    parent[key] = data.draw(JSON)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_no_damaged_message_breaks_a_node(genuine: list[dict[str, Any]], data: st.DataObject) -> None:
    """The node takes it or drops it, and goes on with the genuine ones."""
    message = copy.deepcopy(data.draw(st.sampled_from(genuine)))
    _damage(data, message)

    async def run() -> None:
        reader = Loose(Credentials.from_secret(READER))
        for item in (json.dumps(message), *genuine):
            reader.give(item)
        reader.take()
        for core in list(reader.store.cores.values()):
            if core.header is not None and core.header.is_group:
                reader.store.group_state(core.co_id)

    asyncio.run(run())


READER = Credentials.generate().agent_secret
