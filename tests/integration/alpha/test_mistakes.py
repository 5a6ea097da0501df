"""Mistakes that only a cluster can tell, such as a wrong name or a missing right, end with one clear message."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio.to_thread
import pytest
from support.alpha_cluster import HOST, AlphaCluster, Client, Servers, alpha_cluster
from support.command_mistakes import check_mistake

from reside.cli import config, main
from reside.cli.vault import Vault

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
async def cluster(servers: Servers) -> AsyncIterator[AlphaCluster]:
    """Yield one cluster for all these tests: a mistake has no effect."""
    async with alpha_cluster(servers) as made:
        yield made


@pytest.fixture(scope="module")
async def admin(cluster: AlphaCluster) -> Client:
    """Return an administrator who has loaded a greeter."""
    made = await cluster.admin()
    info = {"name": "greeter", "class": "long-running", "exclusive": True, "scalable": True}
    await cluster.servers.push("contracts/greeting.v1", type="contract", permissions={"greet": {}})
    implementations = {"greeting": {"identity": f"{HOST}/contracts/greeting.v1"}}
    await cluster.servers.push("examples/greeter:v1", type="replica", info=info, implementations=implementations)
    await made.load("examples/greeter:v1")
    return made


@pytest.fixture(scope="module")
async def stranger(cluster: AlphaCluster) -> Client:
    return await cluster.client("stranger")


@pytest.fixture(autouse=True)
def configuration(
    cluster: AlphaCluster, admin: Client, stranger: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Configure the cluster with two contexts: `admin`, the current one, and `stranger`."""
    monkeypatch.setenv("RESIDE_CONFIG", str(tmp_path))
    monkeypatch.setattr("reside.cli.keyrings.keyring_works", lambda: False)
    alpha = cluster.credentials.account_id
    known = config.Cluster(name="admin", namespace="reside", alpha_replica_id=alpha)
    found = config.Config(clusters=(known,))
    for name, client in (("stranger", stranger), ("admin", admin)):
        encrypted = Vault().encrypt(client.credentials.agent_secret)
        account = config.Account(name=name, account_id=client.credentials.account_id, encrypted_agent_secret=encrypted)
        context = config.Context(name=name, cluster="admin", account=name)
        found = found.with_account(account).model_copy(
            update={"contexts": (*found.contexts, context), "current_context": name}
        )
    config.change(lambda _: found)
    reach(monkeypatch, jazz=cluster.servers.jazz.url, alpha=cluster.endpoint)


def reach(monkeypatch: pytest.MonkeyPatch, *, jazz: str, alpha: str) -> None:
    """Let commands reach the cluster at these addresses, as Kubernetes would tell them."""

    def at(address: str) -> Callable[..., object]:
        @asynccontextmanager
        async def opened(*_arguments: object) -> AsyncIterator[str]:
            yield address

        return opened

    monkeypatch.setattr("reside.cli.session.jazz_of", at(jazz))
    monkeypatch.setattr("reside.cli.session.replica_of", at(alpha))


async def reside(line: str) -> int:
    """Run a command in a thread, since it has an event loop of its own; return its exit code."""
    return await anyio.to_thread.run_sync(main.run, line.split())


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("replica describe nobody", "replica nobody does not exist: see `reside replica list`"),
        ("replica history nobody", "replica nobody does not exist: see"),
        ("replica logs nobody", "replica nobody does not exist: see"),
        ("replica pods nobody", "replica nobody does not exist: see"),
        ("replica rollback nobody", "replica nobody does not exist: see"),
        ("replica rollback greeter --version 7", "replica greeter has no earlier version than 1"),
        ("replica enable nobody", "replica nobody does not exist: see"),
        ("replica delete nobody", "replica nobody does not exist: see"),
        ("replica diff greeter", "no load of greeter waits for approval: see `reside request list`"),
        ("replica scale greeter 5000", "5000|pods"),
        ("replica change-owner greeter nobody", "'nobody' is no replica, none of your accounts, no user"),
        ("replica canary promote greeter", "greeter"),
        ("replica diff nobody", "no load of nobody waits for approval: see `reside request list`"),
        ("request show 99", "load request 99 does not exist: see `reside request list --all`"),
        ("request diff 99", "load request 99 does not exist: see"),
        ("request approve 99", "load request 99 does not exist: see"),
        ("request reject 99 --reason no", "request 99"),
        ("permission grant nobody greeter greet", "'nobody' is no replica, none of your accounts, no user"),
        ("permission grant admin nobody greet", "replica nobody does not exist: see"),
        ("permission grant admin greeter nonsense", "nonsense"),
        ("permission grant admin greeter nonsense --params [", "--params is not JSON"),
        ("permission revoke admin greeter nonsense", "nonsense"),
        ("permission explain nobody greeter nonsense", "'nobody' is no replica"),
        ("user list", "user manager"),
        ("state export greeter", "kubernetes-sentinel|Sentinel"),
        ("replica load Bad/Reference --auto-approve", "it has no registry host: write the full name"),
        (f"replica load {HOST}/absent:v1 --auto-approve", "has no such image"),
        ("replica list --context stranger", "replicas can't be read: the account needs"),
        ("request list --context stranger", "load requests can't be listed: the account needs"),
        ("permission list --context stranger", "the account needs"),
        ("permission grant admin greeter greet --context stranger", "the account needs"),
        (f"replica load {HOST}/absent:v1 --context stranger", "needs|permission|lacks"),
    ],
)
async def test_a_mistake_that_the_cluster_tells_is_one_message(
    line: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = await reside(line)
    check_mistake(code, capsys.readouterr().err, 1, says)


async def test_a_jazz_that_is_away_is_named(
    cluster: AlphaCluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("reside.cli.session.CONNECT_S", 0.1)
    reach(monkeypatch, jazz="ws://127.0.0.1:1", alpha=cluster.endpoint)
    code = await reside("replica list")
    says = "Jazz can't be reached at ws://127.0.0.1:1: .*: `reside doctor` shows which part is away"
    check_mistake(code, capsys.readouterr().err, 1, says)


async def test_an_alpha_that_is_away_is_named(
    cluster: AlphaCluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("reside.cli.session.ALPHA_WITHIN_S", 0.1)
    monkeypatch.setattr("reside.cli.outages.WITHIN_S", 0.1)  # a decision is repeated, since it is bound to a revision
    reach(monkeypatch, jazz=cluster.servers.jazz.url, alpha="http://127.0.0.1:1")
    code = await reside("request reject 1 --reason no")
    check_mistake(code, capsys.readouterr().err, 1, "http://127.0.0.1:1 can't be reached: .*: `reside doctor` shows")


async def test_another_cluster_in_place_of_the_known_one_is_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    other = "co_zNobodyNobodyNobodyNobody"
    config.change(
        lambda known: known.model_copy(
            update={"clusters": tuple(c.model_copy(update={"alpha_replica_id": other}) for c in known.clusters)}
        )
    )
    code = await reside("replica list")
    check_mistake(code, capsys.readouterr().err, 1, f"Alpha's account {other} is not in this cluster's Jazz: if")
