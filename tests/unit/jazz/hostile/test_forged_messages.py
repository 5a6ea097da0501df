"""Forged and damaged messages have no effect, and the rest is processed."""

import asyncio
import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.jazz_controlled_nodes import DetachedNode, exchange, exchange_during, registered
from support.jazz_nodes import content
from unit.jazz.messages import core_of, get_to_know, public_map, whole_of

from reside.jazz import Credentials

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
async def test_unsigned_messages_are_dropped_and_the_rest_is_processed(
    kind: str, hub: DetachedNode, writer: DetachedNode
) -> None:
    value = await public_map(writer, hub, {"x": 1})
    value.set("y", 2)
    await exchange(hub, writer)
    whole = whole_of(hub, value)
    forged = copy.deepcopy(whole)
    forged["new"][writer._host.writer.session] = FORGERIES[kind](forged["new"][writer._host.writer.session])
    reader = DetachedNode()
    await get_to_know(reader, hub, writer)
    reader.give(forged)
    assert core_of(reader, value).counts() == {}
    assert core_of(reader, value).header is not None
    other = await public_map(writer, hub, {"other": 1})
    assert content(await exchange_during(hub, reader, reader.load_map(other.id))) == {"other": 1}
    reader.connect()
    reader.give(whole)
    assert core_of(reader, value).counts() == {writer._host.writer.session: 2}


@pytest.mark.anyio
async def test_a_header_that_does_not_match_its_id_is_dropped(hub: DetachedNode, writer: DetachedNode) -> None:
    """Otherwise a server could give a value another owner."""
    value = await public_map(writer, hub, {"x": 1})
    forged = whole_of(hub, value)
    forged["header"]["ruleset"]["group"] = "co_zPfEHWFVK3AzWcsjBoGXmjTEAnLp"
    reader = DetachedNode()
    reader.give(forged)
    assert core_of(reader, value).header is None


@pytest.mark.anyio
async def test_a_session_forged_for_another_account_does_not_verify(hub: DetachedNode, writer: DetachedNode) -> None:
    value = await public_map(writer, hub, {"x": 1})
    other = await registered(hub, "other")
    await exchange_during(hub, writer, value.group.add_member(other.account_id, "writer"))
    await exchange(hub, writer)
    forged = whole_of(hub, value)
    session = other._host.writer.session
    forged["new"] = {session: forged["new"][writer._host.writer.session]}
    reader = DetachedNode()
    await get_to_know(reader, hub, writer)
    await get_to_know(reader, hub, other)
    await exchange_during(hub, reader, reader.load_group(value.group.id))
    reader.give(forged)
    assert core_of(reader, value).counts() == {}
    assert session in core_of(reader, value).rejected


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
async def test_a_malformed_frame_is_ignored(frame: Any, hub: DetachedNode, writer: DetachedNode) -> None:
    writer.give(frame)
    value = await public_map(writer, hub, {"x": 1})
    assert content(value) == {"x": 1}
    assert hub._host.store.core(value.id).counts() == {writer._host.writer.session: 1}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@pytest.fixture(scope="module")
def genuine() -> list[dict[str, Any]]:
    """All messages of an account, a group and a map, as a server sends them."""

    async def make() -> list[dict[str, Any]]:
        hub = DetachedNode()
        writer = await registered(hub, "writer")
        value = await public_map(writer, hub, {"x": 1})
        for co_id in (writer.account_id, value.group.id, value.id):
            hub.give({"action": "load", "id": co_id, "header": False, "sessions": {}})
        return [message for message in hub.take() if message["action"] == "content"]

    return asyncio.run(make())


def _damage(data: st.DataObject, message: Any) -> None:
    """Replace one part of a message, anywhere in it, by some other JSON."""
    parent, key = message, data.draw(st.sampled_from(sorted(message)))
    while isinstance(parent[key], dict | list) and parent[key] and data.draw(st.integers(0, 5)):
        parent = parent[key]
        key = data.draw(st.sampled_from(sorted(parent) if isinstance(parent, dict) else range(len(parent))))
    parent[key] = data.draw(JSON)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_no_damaged_message_breaks_a_node(genuine: list[dict[str, Any]], data: st.DataObject) -> None:
    """The node accepts or drops it, and has all genuine content after the next connection."""
    message = copy.deepcopy(data.draw(st.sampled_from(genuine)))
    _damage(data, message)

    async def run() -> None:
        reader = DetachedNode(Credentials.from_secret(READER))
        for item in (json.dumps(message), *genuine):
            reader.give(item)
        reader.take()
        for core in list(reader._host.store.cores.values()):
            if core.header is not None and core.header.is_group:
                reader._host.store.group_state(core.co_id)
        reader.connect()  # what did not verify is not accepted again on one connection
        for item in genuine:
            reader.give(item)
        for item in genuine:
            expected = {session: new["after"] + len(new["newTransactions"]) for session, new in item["new"].items()}
            assert reader._host.store.core(item["id"]).counts() == expected

    asyncio.run(run())


READER = Credentials.generate().agent_secret
