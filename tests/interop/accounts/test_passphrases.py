"""Passphrases: the same 24 words give the same account here and in jazz-tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reside.jazz import Credentials, InvalidCredentials, Node, new_passphrase

if TYPE_CHECKING:
    from interop.javascript import JavaScript
    from support.jazz_nodes import Nodes
    from support.jazz_server import JazzServer

pytestmark = pytest.mark.anyio


async def test_javascript_logs_in_with_the_passphrase_of_python(jazz: JazzServer, tools: JavaScript) -> None:
    passphrase = new_passphrase()
    async with Node(jazz.url, Credentials.from_passphrase(passphrase)) as node:
        await node.register("python")
        await node.flush()
    made = await tools("credentialsOf", passphrase=passphrase)
    assert made["accountID"] == node.account_id
    await tools("login", actor="again", url=jazz.url, **made)
    assert (await tools("profile", actor="again"))["name"] == "python"


async def test_python_logs_in_with_the_passphrase_of_javascript(
    jazz: JazzServer, tools: JavaScript, nodes: Nodes
) -> None:
    passphrase = await tools("newPassphrase")
    made = await tools("create", url=jazz.url, name="tools", passphrase=passphrase)
    credentials = Credentials.from_passphrase(f" {passphrase.upper()}\n")
    assert (credentials.account_id, credentials.agent_secret) == (made["accountID"], made["accountSecret"])
    account = await (await nodes.again(credentials)).login()
    assert account.name == "tools"


@pytest.mark.parametrize("change", ["one word less", "other word", "unknown word", "empty", "short"])
def test_what_is_no_passphrase_is_refused_without_being_shown(change: str) -> None:
    words = ["abandon"] * 23 + ["art"]
    assert Credentials.from_passphrase(" ".join(words)).account_id.startswith("co_z")
    wrong = {
        "one word less": words[1:],
        "other word": ["zoo", *words[1:]],
        "unknown word": ["jazz", *words[1:]],
        "empty": [],
        "short": ["abandon"] * 11 + ["about"],
    }
    with pytest.raises(InvalidCredentials, match="24 English words") as caught:
        Credentials.from_passphrase(" ".join(wrong[change]))
    assert "abandon" not in str(caught.value)
    assert caught.value.__cause__ is None
