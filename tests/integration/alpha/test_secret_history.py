"""Secrets in the whole history of Jazz: only Alpha and the Sentinel can decrypt one, and nobody what was deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.alpha_cluster import CODE, run_servers
from support.eventually import eventually
from support.jazz_history import History, Stored, carriers

from reside.jazz import Credentials, Node

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.alpha_cluster import AlphaCluster, Client, Servers

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    with run_servers(tmp_path_factory.mktemp("secrets"), erase_s=1) as running:
        yield running


async def test_no_account_can_decrypt_an_agent_secret_that_was_deleted_and_no_other_any_secret(
    cluster: AlphaCluster, servers: Servers, admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """b5760d8: the agent secret of each replica stayed in the history, readable with the key of its group."""
    generated: list[Credentials] = []
    monkeypatch.setattr(
        Credentials, "generate", lambda made=Credentials.generate: generated.append(made()) or generated[-1]
    )
    info = {"name": "greeter", "class": "long-running", "exclusive": True, "scalable": True}
    await servers.push("examples/greeter:v1", type="replica", info=info)
    await admin.load("examples/greeter:v1")
    await cluster.has_status("greeter", "running")
    replica = await cluster.replica("greeter")
    (greeter,) = generated
    assert greeter.account_id == replica.account
    assert replica.agent_secret is not None

    def stored() -> int:
        return sum(item.value == replica.agent_secret and item.text != "[]" for item in history(servers).transactions)

    await eventually("the erasure of the agent secret", stored, lambda count: count == 0)
    await cluster.alpha.node.flush()
    system = (cluster.credentials, cluster.sentinel_credentials)
    parts = [part for account in (*system, greeter, admin.credentials) for part in account.agent_secret.split("/")]
    secrets = [CODE, *parts]

    whole = history(servers)
    assert whole.containing(secrets) == []
    for account in system:
        seen = await decrypted(whole, servers, account)
        assert carriers(seen, greeter.agent_secret.split("/")) == []
        found = carriers(seen, secrets)
        assert found, "the accounts of the platform are stored until the Sentinel and Alpha are loaded"
        for item in found:
            assert item.key is not None
            assert whole.holders(item.key) == {one.account_id for one in system}
    for account in (greeter, admin.credentials):
        seen = await decrypted(whole, servers, account)
        assert seen, "an account that can decrypt nothing shows nothing"
        assert carriers(seen, secrets) == []


async def test_an_erased_secret_is_not_in_the_files_of_the_server(
    cluster: AlphaCluster, servers: Servers, admin: Client
) -> None:
    """Nor is its cipher text: neither in free pages of the database nor in its log of recent writes."""
    info = {"name": "greeter", "class": "long-running", "exclusive": True, "scalable": True}
    await servers.push("examples/greeter:v1", type="replica", info=info)
    cluster.orders.reporting = False
    await admin.load("examples/greeter:v1")
    replica = await cluster.replica("greeter")
    ciphers = [i.text for i in history(servers).transactions if i.value == replica.agent_secret and i.key is not None]
    assert ciphers
    assert all(in_files(servers, cipher) for cipher in ciphers)
    cluster.orders.reporting = True
    cluster.sentinel.process_again()
    await cluster.has_status("greeter", "running")
    await eventually("the erasure", lambda: not any(in_files(servers, cipher) for cipher in ciphers))


def in_files(servers: Servers, text: str) -> bool:
    """Return whether a file of the server's database contains a text."""
    return any(text.encode() in file.read_bytes() for file in servers.jazz.folder.glob("jazz.sqlite*"))


def history(servers: Servers) -> History:
    """Return all that the server has stored."""
    return History(servers.jazz.folder / "jazz.sqlite")


async def decrypted(history: History, servers: Servers, account: Credentials) -> dict[Stored, str]:
    """Return what an account can decrypt of the history."""
    async with Node(servers.jazz.url, account) as node:
        await node.login()
        return await history.decrypted_by(node)
