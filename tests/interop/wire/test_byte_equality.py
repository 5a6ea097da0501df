"""Data that the JavaScript library creates in each run is equal to the byte in Python, and vice versa."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from interop.javascript import JavaScript, javascript
from support.jazz_controlled_nodes import DetachedNode, SwitchedNode
from support.jazz_nodes import content
from support.jazz_server import JazzServer

from reside.jazz import Credentials, InvalidContent, now_ms
from reside.jazz.wire import crypto as ours
from reside.jazz.wire.encoding import compact_json, parse_json, stable_json

pytestmark = pytest.mark.anyio

COMMON = settings(
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
NUMBERS = st.integers(-(2**70), 2**70) | st.floats() | st.sampled_from([2**53 - 1, 2**53 + 1, 10**21, 1e21, 1e-7, -0.0])
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(max_size=6) | st.sampled_from(["encrypted_Ua", "\ud800", "\u2028"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
TEXTS = st.text('0123456789.eE+-[]{}:,"\\u d8tfn \t\nNaI', max_size=8)


@pytest.fixture(scope="module")
async def js() -> AsyncIterator[JavaScript]:
    """Yield one JavaScript client for all of these tests."""
    async with javascript() as driver:
        yield driver


def _parsed(text: str) -> str | None:
    try:
        return stable_json(parse_json(text))
    except InvalidContent:
        return None


def _damaged(text: str, at: int, piece: str) -> str:
    place = at % (len(text) + 1)
    return text[:place] + piece + text[place + len(piece) :]


@settings(COMMON, max_examples=30)
@given(
    sources=st.lists(
        st.builds(json.dumps, JSON, ensure_ascii=st.booleans())
        | st.builds(_damaged, st.builds(json.dumps, JSON), st.integers(0, 30), TEXTS)
        | TEXTS,
        min_size=30,
        max_size=60,
    )
)
async def test_any_text_is_parsed_and_written_as_in_javascript(js: JavaScript, sources: list[str]) -> None:
    """Also numbers beyond a double, duplicate keys, lone surrogates, and text that is not JSON."""
    sources = [source.encode("utf-8", "replace").decode() for source in sources]
    assert [_parsed(source) for source in sources] == await js("parsed", sources=sources)


@settings(COMMON, max_examples=40)
@given(value=JSON, index=st.integers(0, 2**31), text=st.text(min_size=1, max_size=20))
async def test_hashes_ciphers_seals_and_signatures_of_any_content(
    js: JavaScript, value: Any, index: int, text: str
) -> None:
    value, text = parse_json(compact_json(value)), text.encode("utf-8", "replace").decode()
    secret = ours.new_agent_secret()
    agent, other = ours.Agent.from_secret(secret), ours.Agent.from_secret(ours.new_agent_secret())
    key = ours.ReadKey.generate()
    material = {"in": "co_z1", "tx": {"sessionID": "co_z2_session_z3", "txIndex": index}}
    nonce = stable_json(material)
    made = await js(
        "made", value=value, text=text, secret=secret, to=other.sealer_id, key=key.secret, material=material
    )
    assert ours.secure_hash(value) == made["secureHash"]
    assert "shortHash_z" + ours.short_hash(stable_json(value)) == made["shortHash"]
    assert ours.encrypt_text(stable_json(value), key.secret, nonce) == made["encrypted"]
    assert ours.decrypt(made["encrypted"], key.secret, nonce).decode() == stable_json(value)
    assert agent.sign(stable_json(text)) == made["signature"]
    assert ours.verify(made["signature"], stable_json(text), agent.signer_id)
    assert ours.seal(key.secret, agent, other.sealer_id, nonce) == made["sealed"]
    assert ours.unseal_key(made["sealed"], other, agent.sealer_id, nonce) == key.secret
    sealer = await js("crypto", name="groupSealerFromReadKey", args=[key.secret])
    assert ours.group_sealer_value(key) == f"{key.key_id}@{sealer['publicKey']}"
    box = {"message": key.secret, "to": sealer["publicKey"], "nOnceMaterial": material}
    assert (
        ours.unseal_key_for_group(await js("crypto", name="sealForGroup", args=[box]), key.secret, nonce) == key.secret
    )
    back = ours.seal_key_for_group(key.secret, sealer["publicKey"], nonce)
    assert await js("crypto", name="unsealForGroup", args=[back, sealer["secret"], material]) == key.secret


SAMPLE = {
    "text": "ü\u2028\U0001f600",
    "big": 2**53,
    "half": 0.5,
    "tiny": 1e-7,
    "huge": 1e21,
    "none": None,
    "in": [{"a": []}],
}
LARGE = "x" * 60_000


async def _all_kinds_by_javascript(js: JavaScript, group: str) -> dict[str, str]:
    """Return a value of each kind, with edits; one of them in several parts."""
    a_map = await js("map", actor="js", group=group, init=SAMPLE)
    await js("set", actor="js", id=a_map, key="text", value="again")
    await js("del", actor="js", id=a_map, key="half")
    a_list = await js("list", actor="js", group=group, init=["a", "b", "c"])
    await js("prepend", actor="js", id=a_list, value={"first": 1}, before=0)
    await js("remove", actor="js", id=a_list, at=2)
    feed = await js("feed", actor="js", group=group)
    for item in (1, {"two": 2}, None):
        await js("push", actor="js", id=feed, value=item)
    text = await js("text", actor="js", group=group, init="grüße \U0001f468\u200d\U0001f469\u200d\U0001f467!")
    unique = await js("unique", actor="js", group=group, type="comap", name="settings", init={"a": 1})
    large = await js("list", actor="js", group=group, init=["begin"])
    for number in range(5):
        await js("appendItems", actor="js", id=large, values=[f"{number}{LARGE}"])
    restricted = await js("restrictedList", actor="js", group=group, init=[1, 2])
    kinds = {"map": a_map, "list": a_list, "feed": feed, "text": text, "unique": unique}
    return kinds | {"large": large, "restricted": restricted}


def _joined(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the parts of a value as one: its header, and of each session the transactions and the last signature."""
    sessions: dict[str, Any] = {}
    for message in messages:
        for name, batch in message["new"].items():
            log = sessions.setdefault(name, {"transactions": [], "signature": None})
            assert batch["after"] == len(log["transactions"])
            log["transactions"] += batch["newTransactions"]
            log["signature"] = batch["lastSignature"]
    return {"header": messages[0]["header"], "sessions": sessions, "priority": {item["priority"] for item in messages}}


def _whole(node: DetachedNode, co_id: str) -> list[dict[str, Any]]:
    """Return what a node sends to a peer that has nothing."""
    node.take()
    node.give({"action": "load", "id": co_id, "header": False, "sessions": {}})
    return [message for message in node.take() if message["id"] == co_id]


async def test_whole_values_of_javascript_are_read_and_sent_on_unchanged(js: JavaScript, jazz: JazzServer) -> None:
    """A node that gets what JavaScript would send has the same ids, contents and logs, and sends the same."""
    made = await js("create", actor="js", url=jazz.url, name="js")
    group = await js("group", actor="js", name="fixtures")
    await js("addMember", actor="js", group=group, account="everyone", role="reader")
    kinds = await _all_kinds_by_javascript(js, group)
    python = DetachedNode()
    for co_id in (made["accountID"], group, *kinds.values()):
        messages = await js("messages", actor="js", id=co_id)
        for message in messages:
            python.give(message)
        assert _joined(_whole(python, co_id)) == _joined(messages)
    for kind, co_id in kinds.items():
        assert content(await python.load(co_id)) == await js("load", actor="js", id=co_id), kind
    account = await python.load_account(made["accountID"])
    assert account.agent_id == ours.Agent.from_secret(made["accountSecret"]).agent_id
    assert (await python.load_group(group)).name == "fixtures"
    assert len(await js("messages", actor="js", id=kinds["large"])) > 1


async def test_whole_values_of_python_are_read_and_sent_on_unchanged(js: JavaScript, jazz: JazzServer) -> None:
    credentials = Credentials.generate()
    python = SwitchedNode(jazz.url, credentials, clock=now_ms)
    await python.online()
    await python.register("python")
    group = python.create_group("fixtures")
    await group.add_member("everyone", "reader")
    a_map, a_list, feed, text = (
        group.create_map(SAMPLE),
        group.create_list(["a", "b", "c"]),
        group.create_feed(),
        group.create_text("grüße \U0001f468\u200d\U0001f469\u200d\U0001f467!"),
    )
    a_map.set("text", "again")
    a_map.delete("half")
    a_list.insert(0, {"first": 1})
    a_list.remove(2)
    for item in (1, {"two": 2}, None):
        feed.push(item)
    unique = await python.unique_map(group, "settings", {"a": 1})
    large = group.create_list(["begin"])
    for number in range(5):
        large.append(f"{number}{LARGE}")
        await asyncio.sleep(0)  # one signature each
    await python.flush()
    await js("create", actor="reader", url=jazz.url, name="reader")
    loose = DetachedNode()
    for co_id in (
        credentials.account_id,
        group.id,
        *(value.id for value in (a_map, a_list, feed, text, unique, large)),
    ):
        await js("until", actor="reader", id=co_id, count=len(python._host.store.core(co_id).transactions))
        messages = await js("messages", actor="reader", id=co_id)
        for message in messages:
            loose.give(message)
        assert _joined(_whole(loose, co_id)) == _joined(messages)
        assert loose._host.store.core(co_id).counts() == python._host.store.core(co_id).counts()
    for value in (a_map, a_list, feed, text, unique, large):
        assert content(value) == await js("load", actor="reader", id=value.id) == content(await loose.load(value.id))
    await python.leave()
