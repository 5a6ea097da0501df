"""Inbox messages in both directions between Python and jazz-tools, and between two Python nodes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from interop.javascript import JavaScript, JavaScriptError
from support.jazz_nodes import Nodes, until
from support.jazz_server import JazzServer

from reside.jazz import (
    AccountId,
    CoMap,
    Inbox,
    InboxMessage,
    InboxSender,
    InvalidContent,
    JazzTimeout,
    MessageRefused,
    Node,
    make_inbox,
)

pytestmark = pytest.mark.anyio


async def _shout(message: InboxMessage) -> CoMap | None:
    payload = message.payload
    assert isinstance(payload, CoMap)
    text = payload["text"]
    if text == "bad":
        raise MessageRefused("that is bad")
    if text == "bug":
        raise ZeroDivisionError("inner detail")
    return None if text == "quiet" else payload.group.create_map({"text": f"{text.upper()} from {message.sender}"})


@asynccontextmanager
async def _serving(node: Node) -> AsyncIterator[None]:
    inbox = await Inbox.open(node)
    await node.flush()
    task = asyncio.create_task(inbox.serve(_shout))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def _worker(tools: JavaScript, jazz: JazzServer) -> AccountId:
    made = await tools("create", url=jazz.url, name="worker")
    await tools("login", actor="worker", url=jazz.url, **made)
    await tools("flush", actor="worker")
    return AccountId(made["accountID"])


async def test_python_sends_to_javascript(jazz: JazzServer, tools: JavaScript, nodes: Nodes) -> None:
    owner, node = await _worker(tools, jazz), await nodes("sender")
    await tools("answerInbox", actor="worker")
    sender = await InboxSender.open(node, owner)
    answer = await sender.send(node.create_group().create_map({"text": "hello"}))
    assert answer is not None
    await until(await node.load_map(answer), {"text": f"HELLO from {node.account_id}"})
    with pytest.raises(MessageRefused, match="that is bad"):
        await sender.send(node.create_group().create_map({"text": "bad"}))


async def test_javascript_sends_to_python(jazz: JazzServer, tools: JavaScript, nodes: Nodes) -> None:
    sender, node = await _worker(tools, jazz), await nodes("owner")
    async with _serving(node):
        answer = await tools("send", actor="worker", owner=node.account_id, text="hello")
        assert await tools("read", actor="worker", id=answer) == f"HELLO from {sender}"
        with pytest.raises(JavaScriptError, match="that is bad"):
            await tools("send", actor="worker", owner=node.account_id, text="bad")


async def test_python_serves_an_inbox_that_javascript_created(
    jazz: JazzServer, tools: JavaScript, nodes: Nodes
) -> None:
    """Account and inbox were created by jazz-tools; a Python process handles the messages."""
    made = await tools("create", url=jazz.url, name="worker")
    owner = await nodes.login(made["accountID"], made["accountSecret"])
    sender = await nodes("sender")
    root = owner.account.profile["inbox"]
    async with _serving(owner):
        assert owner.account.profile["inbox"] == root
        opened = await InboxSender.open(sender, owner.account_id)
        assert await opened.send(sender.create_group().create_map({"text": "quiet"})) is None


async def test_each_message_is_handled_once_also_after_a_restart(nodes: Nodes) -> None:
    owner, sender = await nodes("owner"), await nodes("sender")
    await make_inbox(owner)
    await owner.flush()
    opened = await InboxSender.open(sender, owner.account_id)
    group = sender.create_group()
    values = [group.create_map({"text": f"quiet{number}"}) for number in range(5)]
    async with _serving(owner):
        await asyncio.gather(*(opened.send(value) for value in values[:3]))
        await owner.flush()
    handled: list[str] = []

    async def note(message: InboxMessage) -> None:
        assert isinstance(message.payload, CoMap)
        handled.append(str(message.payload["text"]))

    again = asyncio.create_task((await Inbox.open(owner)).serve(note))
    try:
        await asyncio.gather(*(opened.send(value) for value in values[3:]))
    finally:
        again.cancel()
        await asyncio.wait([again])
    assert sorted(handled) == ["quiet3", "quiet4"]


async def test_a_failing_handler_sends_the_sender_no_details(nodes: Nodes) -> None:
    owner, node = await nodes("owner"), await nodes("sender")
    async with _serving(owner):
        sender = await InboxSender.open(node, owner.account_id)
        with pytest.raises(MessageRefused, match=r"^ZeroDivisionError$"):
            await sender.send(node.create_group().create_map({"text": "bug"}))
        await sender.send(node.create_group().create_map({"text": "quiet"}))
    failed = await owner.load_feed((await owner.load_map(owner.account.profile["inbox"]))["failed"])
    assert [entry.value["errors"] for entry in failed.entries()] == [["ZeroDivisionError"]]


async def test_invalid_entries_in_the_inbox_are_skipped(nodes: Nodes) -> None:
    """Anyone can push anything: entries that are no ids are skipped, ids of missing values are failed messages."""
    owner, node = await nodes("owner"), await nodes("sender")
    async with _serving(owner):
        sender = await InboxSender.open(node, owner.account_id)
        messages = await node.load_feed((await owner.load_map(owner.account.profile["inbox"]))["messages"])
        for junk in (7, None, "no id", {"payload": 1}, node.account.profile.id):
            messages.push(junk)
        await sender.send(node.create_group().create_map({"text": "quiet"}))
        failed = await owner.load_feed((await owner.load_map(owner.account.profile["inbox"]))["failed"])
        await until(failed, lambda feed: [entry.value["errors"] for entry in feed.entries()] == [["InvalidContent"]])


async def test_an_owner_that_does_not_respond_is_named(nodes: Nodes) -> None:
    owner, node = await nodes("owner"), await nodes("sender")
    await make_inbox(owner)
    await owner.flush()
    sender = await InboxSender.open(node, owner.account_id)
    with pytest.raises(JazzTimeout, match=owner.account_id):
        await sender.send(node.create_group().create_map({"text": "hello"}), timeout=0.1)


async def test_an_account_without_an_inbox_is_named(nodes: Nodes) -> None:
    owner, sender = await nodes("owner"), await nodes("sender")
    with pytest.raises(InvalidContent, match=owner.account_id):
        await InboxSender.open(sender, owner.account_id)
