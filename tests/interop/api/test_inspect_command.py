"""`python -m reside.jazz inspect`: its output for values of both libraries, and its errors."""

import asyncio
import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from interop.javascript import JavaScript
from interop.open_server import needs_open_server
from support.jazz_nodes import Nodes
from support.jazz_server import JazzServer

from reside.jazz import AccountId, Credentials, Node
from reside.jazz.__main__ import main
from reside.jazz.ids import SessionId
from reside.jazz.inspect import inspect_value
from reside.jazz.memory.covalue import Batch, Rejection, Skipped

pytestmark = pytest.mark.anyio


async def _run(*arguments: str) -> tuple[int, str, str]:
    """Run the command in this process and return its result; one test runs it in a process of its own."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = await asyncio.to_thread(main, arguments)
    return code, out.getvalue(), err.getvalue()


async def _json(*arguments: str) -> Any:
    code, out, err = await _run("inspect", *arguments, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


@pytest.fixture
async def owner(jazz: JazzServer) -> Credentials:
    """Return an account that is registered."""
    credentials = Credentials.generate()
    async with Node(jazz.url, credentials) as node:
        await node.register("owner")
    return credentials


@needs_open_server
async def test_a_value_is_shown_with_its_group_and_the_reason_for_each_verdict(
    jazz: JazzServer, js: JavaScript, nodes: Nodes, owner: Credentials, tmp_path: Path
) -> None:
    """A reader's forbidden write reaches all nodes; each refuses it, and gives the reason."""
    reader = await js("create", actor="reader", url=jazz.url, name="reader")
    await js("flush", actor="reader")
    node = await nodes.again(owner)
    group = node.create_group("the group")
    await group.add_member(AccountId(reader["accountID"]), "reader")
    a_map = group.create_map({"title": "grüße", "n": 1})
    await node.flush()
    forbidden = [{"op": "set", "key": "title", "value": "forged"}]
    await js("transact", actor="reader", id=a_map.id, changes=forbidden)
    await js("flush", actor="reader")

    file = tmp_path / "credentials.json"
    file.write_text(json.dumps({"accountId": owner.account_id, "agentSecret": owner.agent_secret}))
    report = await _json(jazz.url, a_map.id, "--credentials", str(file))
    assert (report["id"], report["kind"], report["content"]) == (a_map.id, "map", {"title": "grüße", "n": 1})
    assert (report["group"]["id"], report["group"]["name"], report["group"]["my_role"]) == (
        group.id,
        "the group",
        "admin",
    )
    assert report["group"]["members"] == {owner.account_id: "admin", reader["accountID"]: "reader"}
    valid, invalid = report["transactions"]
    assert (valid["outcome"], valid["author"], valid["role"], valid["reason"]) == (
        "valid",
        owner.account_id,
        "admin",
        None,
    )
    assert [change["key"] for change in valid["changes"]] == ["title", "n"]
    assert (invalid["outcome"], invalid["author"], invalid["role"]) == ("invalid", reader["accountID"], "reader")
    assert invalid["reason"] == "its author's role at that time is reader"

    code, out, _ = await _run("inspect", jazz.url, a_map.id, "--credentials", str(file))
    assert code == 0
    assert f"{a_map.id}  map" in out
    assert f'owner    group {group.id} "the group"' in out
    assert "because its author's role at that time is reader" in out
    assert "transactions: 2, of which 1 count" in out


async def test_a_stranger_sees_authors_but_no_content(jazz: JazzServer, nodes: Nodes) -> None:
    node = await nodes("owner")
    a_map = node.create_group().create_map({"secret": "x"})
    await node.flush()
    report = await _json(jazz.url, a_map.id)
    assert (report["content"], report["group"]["my_role"]) == ({}, None)
    (transaction,) = report["transactions"]
    assert (transaction["outcome"], transaction["changes"], transaction["role"]) == ("unreadable", None, "admin")
    assert "key was not revealed" in transaction["reason"]
    assert "(can't be read)" in (await _run("inspect", jazz.url, a_map.id))[1]


async def test_groups_and_accounts_are_shown_without_what_reveals_keys(jazz: JazzServer, nodes: Nodes) -> None:
    node = await nodes("owner")
    group = node.create_group()
    parent = node.create_group("parent")
    await group.extend(parent, "reader")
    await group.add_member("everyone", "reader")
    await node.flush()
    code, out, _ = await _run("inspect", jazz.url, group.id)
    assert code == 0
    assert f"extends  {parent.id} reader" in out
    assert "member   everyone reader" in out
    assert "keySecret, hidden" in out
    assert "keySecret_z" not in out
    assert "sealed_U" not in out
    account = await _json(jazz.url, node.account_id)
    assert (account["kind"], account["content"]["profile"]) == ("account", node.account.profile_id)


async def test_every_kind_of_value_is_shown(jazz: JazzServer, nodes: Nodes) -> None:
    node = await nodes("owner")
    group = node.create_group()
    await group.add_member("everyone", "reader")
    feed = group.create_feed()
    feed.push(1)
    file = group.create_file(b"abc", mime_type="text/plain", name="a.txt")
    values = [group.create_list([1, "two"]), group.create_text("text"), feed, file]
    unique = await node.unique_map(group, "name", {"a": 1})
    await node.flush()
    shown = [(await _json(jazz.url, value.id))["content"] for value in values]
    assert shown[:2] == [[1, "two"], "text"]
    assert [entry["value"] for entry in shown[2]] == [1]
    assert shown[3] == {"mime_type": "text/plain", "name": "a.txt", "size": 3, "received": 3, "finished": True}
    code, out, _ = await _run("inspect", jazz.url, unique.id)
    assert code == 0
    assert 'unique   "name"' in out


async def test_the_deletion_of_a_deleted_value_is_shown(jazz: JazzServer, nodes: Nodes) -> None:
    node = await nodes("owner")
    a_map = node.create_group().create_map({"x": 1})
    await node.flush()
    a_map.destroy()
    await node.flush()
    report = await _json(jazz.url, a_map.id)
    assert report["content"] == {}
    assert "an admin of its group deleted it" in report["notes"][0]
    (deletion,) = [item for item in report["transactions"] if item["outcome"] == "valid"]
    assert (deletion["author"], deletion["meta"]) == (node.account_id, {"deleted": a_map.id})


async def test_inspecting_writes_nothing(jazz: JazzServer, nodes: Nodes) -> None:
    node = await nodes("owner")
    group = node.create_group()
    a_map = group.create_map({"x": 1})
    await node.flush()
    first, second = [await _json(jazz.url, a_map.id) for _ in range(2)]
    assert first == second
    assert len(first["transactions"]) == 1


async def test_the_command_runs_as_a_module_and_names_a_missing_value(jazz: JazzServer) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "reside.jazz", "inspect", jazz.url, "co_z11111111111111111111111111"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert (process.returncode, out) == (3, b"")
    assert err == b"jazz: no value co_z11111111111111111111111111: the sync server does not have it\n"


async def test_waiting_and_refused_content_is_shown(jazz: JazzServer, nodes: Nodes) -> None:
    node = await nodes("owner")
    a_map = node.create_group().create_map({"x": 1})
    core = node._host.store.core(a_map.id)
    core.rejected = {"co_zA_session_zS": Rejection(1, "its signature does not verify")}
    log = core.log(next(iter(core.sessions)))
    core.deferred = {"co_zB": {(log.session, 0): Batch(log.session, 0, log.transactions, "")}}
    core.skipped = Skipped(1, frozenset(), {"co_zC": {SessionId("co_zC_session_zS"): 2}})
    report = await inspect_value(node, a_map.id)
    assert report.notes == (
        "the rest of the session co_zA_session_zS is ignored: its signature does not verify",
        "1 sessions by 1 authors without a role are skipped, such as co_zC",
        "1 transactions are deferred until co_zB arrives: it is not on the server",
    )
