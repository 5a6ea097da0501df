"""Accounts that log in on both sides: created in Python for jazz-tools' `startWorker`, and vice versa."""

import pytest
from interop.javascript import JavaScript
from support.jazz_nodes import Nodes, until
from support.jazz_server import JazzServer

from reside.jazz import Credentials, InvalidCredentials, Node, ValueNotFound

pytestmark = pytest.mark.anyio


async def test_an_account_made_in_python_logs_in_with_start_worker(
    jazz: JazzServer, tools: JavaScript, nodes: Nodes
) -> None:
    """`startWorker` creates its inbox, and both sides read and write its own values."""
    credentials = Credentials.generate()
    async with Node(jazz.url, credentials) as node:
        account = await node.register("Ada")
        assert "inbox" not in account.profile
        note = node.create_group().create_map({"text": "from Python"})
        await node.flush()
        login = {"accountID": credentials.account_id, "accountSecret": credentials.agent_secret}
        assert await tools("login", actor="worker", url=jazz.url, **login) == {"id": credentials.account_id}
        await tools("flush", actor="worker")
        profile = await tools("profile", actor="worker")
        await until(account.profile, lambda seen: seen.as_dict() == profile)
        assert set(profile) == {"name", "inbox", "inboxInvite"}
        assert await tools("read", actor="worker", id=note.id) == "from Python"
        theirs = await tools("note", actor="worker", text="from JavaScript")
        await tools("flush", actor="worker")
        await until(await node.load_map(theirs), {"text": "from JavaScript"})


async def test_an_account_made_by_jazz_tools_logs_in_with_python(
    jazz: JazzServer, tools: JavaScript, nodes: Nodes
) -> None:
    made = await tools("create", url=jazz.url, name="Grace")
    node = await nodes.login(made["accountID"], made["accountSecret"])
    assert node.account.name == "Grace"
    note = node.create_group().create_map({"text": "from Python"})
    node.account.profile.set("name", "Hopper")
    await node.flush()
    await tools("login", actor="worker", url=jazz.url, **made)
    assert (await tools("profile", actor="worker"))["name"] == "Hopper"
    assert await tools("read", actor="worker", id=note.id) == "from Python"


async def test_both_log_in_again_and_again_without_forking_a_log(
    jazz: JazzServer, tools: JavaScript, nodes: Nodes
) -> None:
    made = await tools("create", url=jazz.url, name="twice")
    first = await nodes.login(made["accountID"], made["accountSecret"])
    value = first.account.create_map({"x": 0})
    await first.flush()
    for round_number in (1, 2):
        await tools("login", actor=f"worker{round_number}", url=jazz.url, **made)
        again = await nodes.login(made["accountID"], made["accountSecret"])
        (await again.load_map(value.id)).set("x", round_number)
        await until(value, {"x": round_number})
    assert all(refusal is None for _, _, refusal in value.refusals())


async def test_the_secret_of_another_account_is_refused(jazz: JazzServer, tools: JavaScript) -> None:
    made = await tools("create", url=jazz.url, name="somebody")
    with pytest.raises(InvalidCredentials, match=made["accountID"]):
        Node(jazz.url, Credentials(made["accountID"], Credentials.generate().agent_secret))
    async with Node(jazz.url, Credentials.generate()) as node:
        with pytest.raises(ValueNotFound, match=node.account_id):
            await node.login()
