"""Secrets in the whole history of Jazz: only Alpha and the Sentinel can decrypt a transaction that contains one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from support.alpha_cluster import CODE
from support.eventually import eventually
from support.jazz_history import History, Stored, carriers

from reside.jazz import Credentials, Node

if TYPE_CHECKING:
    from support.alpha_cluster import AlphaCluster, Client, Servers

pytestmark = pytest.mark.anyio


async def test_no_other_account_can_decrypt_any_secret_that_was_written(
    cluster: AlphaCluster, servers: Servers, admin: Client
) -> None:
    """Also the agent secret that is deleted from its map once the Sentinel has stored it."""
    info = {"name": "greeter", "class": "long-running", "exclusive": True, "scalable": True}
    await servers.push("examples/greeter:v1", type="replica", info=info)
    await admin.load("examples/greeter:v1")
    await cluster.has_status("greeter", "running")
    replica = await cluster.replica("greeter")
    assert replica.agent_secret is not None
    secret = await cluster.alpha.node.load_map(replica.agent_secret)
    await eventually("that the secret is forgotten", lambda: "value" not in secret)
    await cluster.alpha.node.flush()

    history = History(servers.jazz.folder / "jazz.sqlite")
    seen_by_alpha = await decrypted(history, servers, cluster.credentials)
    (written,) = [text for item, text in seen_by_alpha.items() if item.value == secret.id and '"set"' in text]
    greeter = Credentials.from_secret(json.loads(written)[0]["value"])
    assert greeter.account_id == replica.account
    system = (cluster.credentials, cluster.sentinel_credentials)
    others = (greeter, admin.credentials)
    secrets = [CODE, *(part for account in (*system, *others) for part in account.agent_secret.split("/"))]

    assert history.containing(secrets) == []
    for seen in (seen_by_alpha, await decrypted(history, servers, cluster.sentinel_credentials)):
        found = carriers(seen, secrets)
        assert secret.id in {item.value for item in found}
        for item in found:
            assert item.key is not None
            assert history.holders(item.key) == {account.account_id for account in system}
    for account in others:
        seen = await decrypted(history, servers, account)
        assert seen, "an account that can decrypt nothing shows nothing"
        assert carriers(seen, secrets) == []


async def decrypted(history: History, servers: Servers, account: Credentials) -> dict[Stored, str]:
    """Return what an account can decrypt of the history."""
    async with Node(servers.jazz.url, account) as node:
        await node.login()
        return await history.decrypted_by(node)
