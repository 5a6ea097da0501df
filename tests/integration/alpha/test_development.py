"""`reside dev` without Kubernetes: real files, builds, registry and Alpha; the Sentinel is a fake."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import httpx2
import pytest
from support.eventually import eventually
from support.reside_command import operator_of

from reside.alpha import open_requests, records
from reside.build.language import Language
from reside.build.watching import watching
from reside.cli import dev
from reside.cli.developing import Development, Means, develop
from reside.cli.main import expected_errors, notes_of, one_line
from reside.cli.new import Kind, make, parse_names
from reside.cli.session import Session, endpoint_at
from reside.jazz import AccountId
from reside.model.constants import ALPHA_CONTRACT, ALPHA_ID, RESIDE_REGISTRY
from reside.registry import Bytes, ImageReference, RegistryClient
from reside.registry.client import node_architecture

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from support.alpha_cluster import AlphaCluster, Client, Servers

    from reside.cli.developing import Arrival
    from reside.model.entities import LoadRequest

pytestmark = pytest.mark.anyio

RUNTIME = f"{RESIDE_REGISTRY}/reside/runtime:test"


@pytest.fixture
async def builder(servers: Servers) -> dev.Builder:
    """Return a builder, whose runtime image is in the registry."""
    layer, client = Bytes(b"a layer"), RegistryClient(servers.registry.mirrors)
    config = {
        "architecture": node_architecture(),
        "os": "linux",
        "config": {"User": "65532"},
        "rootfs": {"type": "layers", "diff_ids": [layer.digest]},
    }
    await client.push_image(ImageReference.parse(RUNTIME), json.dumps(config).encode(), [layer])
    return dev.Builder("dev", RUNTIME, servers.registry.mirrors, client)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder of a new replica."""
    make(tmp_path / "hello", Kind.replica, parse_names("hello", f"{RESIDE_REGISTRY}/dev"))
    return tmp_path / "hello"


@dataclass
class Operator:
    """Who sees load requests and decides on them.

    Attributes:
        approves: whether requests are approved at once; otherwise the decision takes forever.
        asked: the load requests that were shown.
        said: what was told.
        failed: why changes were not loaded.
    """

    approves: bool = True
    asked: list[int] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    async def decide(self, request: LoadRequest) -> None:
        """Approve or wait."""
        self.asked.append(request.id)
        if not self.approves:
            await asyncio.Event().wait()

    def arrive(self, arrival: Arrival) -> None:
        """Note what the cluster runs."""
        self.said.append(str(arrival))

    def fail(self, error: Exception) -> None:
        """Note an error."""
        self.failed.append(" ".join([one_line(error), *notes_of(error)]))


@asynccontextmanager
async def developing(
    cluster: AlphaCluster, client: Client, builder: dev.Builder, folder: Path, operator: Operator
) -> AsyncIterator[asyncio.Task[None]]:
    """Run what `reside dev` runs while the block is open; then end it as Ctrl-C does."""
    async with httpx2.AsyncClient(trust_env=False) as http:
        data = await client.node.load_map(cluster.alpha.data.root.id)
        alpha = AccountId(cluster.credentials.account_id)
        session = Session(client.node, client.credentials, data, alpha, endpoint_at(cluster.endpoint), lambda: http)
        means = Means(builder.build, operator.decide, operator.said.append, operator.arrive)
        development = Development(session, means, None)
        with watching(folder) as changes:
            states = dev.states(folder, builder.tag, changes, operator.fail)
            running = asyncio.create_task(develop(development, states, operator.fail, expected_errors()))
            try:
                yield running
            finally:
                if not running.cancelling():
                    running.cancel()
                await asyncio.gather(running, return_exceptions=True)


def edit(folder: Path, text: str) -> None:
    save(folder, f"{(folder / 'main.py').read_text()}\n# {text}\n")


def save(folder: Path, text: str) -> None:
    """Replace main.py in one step: on a busy machine, a file that is emptied first could be loaded as it is then."""
    (folder.parent / "main.py").write_text(text)
    (folder.parent / "main.py").rename(folder / "main.py")


async def status(cluster: AlphaCluster, number: int) -> str:
    return (await records.find_request(cluster.alpha.data, number)).value.status


async def until_said(operator: Operator, text: str) -> None:
    await eventually(f"the line {text!r}", lambda: list(operator.said), lambda said: any(text in line for line in said))


@pytest.fixture
def operator() -> Operator:
    """Return an operator who approves everything."""
    return Operator()


async def test_each_change_becomes_a_version_and_mistakes_wait_for_the_next_one(
    cluster: AlphaCluster, admin: Client, builder: dev.Builder, folder: Path, operator: Operator
) -> None:
    async with developing(cluster, admin, builder, folder, operator):
        await until_said(operator, "hello version 1 is running after ")
        edit(folder, "changed")
        await until_said(operator, "hello version 2 is running after ")
        save(folder, "def broken(:\n")
        await eventually("the mistake", lambda: list(operator.failed), bool)
        save(folder, "repaired = True\n")
        await until_said(operator, "hello version 3 is running after ")
        await cluster.has_status("hello", "stopped", "stopped", "running")
    assert len(operator.asked) == 3
    assert all("main.py:1 is not Python" in line for line in operator.failed)
    assert [line.partition(" after ")[0] for line in operator.said] == [
        f"hello version {number} is running" for number in (1, 2, 3)
    ]


async def test_a_replica_in_typescript_is_checked_and_loaded_at_each_change(
    cluster: AlphaCluster, admin: Client, builder: dev.Builder, tmp_path: Path, operator: Operator
) -> None:
    folder = tmp_path / "hallo"
    make(folder, Kind.replica, parse_names("hallo", f"{RESIDE_REGISTRY}/dev"), Language.typescript)
    before = (folder / "greet.ts").read_text()
    async with developing(cluster, admin, builder, folder, operator):
        await until_said(operator, "hallo version 1 is running after ")
        (folder / "node_modules").mkdir()  # as `npm install` does
        (folder / "greet.ts").write_text(before.replace("Hello, ", "Hallo, ").replace("message: `", "massage: `"))
        await eventually("the mistake", lambda: list(operator.failed), bool)
        (folder / "greet.ts").write_text(before.replace("Hello, ", "Hallo, "))
        await until_said(operator, "hallo version 2 is running after ")
    assert all("errors of types: correct them greet.ts(" in line for line in operator.failed), operator.failed
    assert len(operator.asked) == 2


async def test_files_that_run_already_are_not_loaded_again(
    cluster: AlphaCluster, admin: Client, builder: dev.Builder, folder: Path, operator: Operator
) -> None:
    async with developing(cluster, admin, builder, folder, operator):
        await until_said(operator, "hello version 1 is running after ")
    async with developing(cluster, admin, builder, folder, operator):
        await until_said(operator, "hello version 1 is running, with the files as they are now")
    assert len(operator.asked) == 1


async def test_a_change_takes_the_place_of_one_that_waits_for_approval(
    cluster: AlphaCluster, admin: Client, builder: dev.Builder, folder: Path, operator: Operator
) -> None:
    operator.approves = False
    async with developing(cluster, admin, builder, folder, operator):
        await eventually("the first question", lambda: list(operator.asked), lambda asked: len(asked) == 1)
        operator.approves = True
        edit(folder, "better")
        await cluster.has_status("hello", "running")
    assert [await status(cluster, number) for number in operator.asked] == ["rejected", "approved"]


async def test_a_change_takes_the_place_of_a_version_that_does_not_start(
    cluster: AlphaCluster, admin: Client, builder: dev.Builder, folder: Path, operator: Operator
) -> None:
    cluster.orders.hold.add("Deployment/hello-1")
    cluster.orders.problems["Deployment/hello-1"] = "CrashLoopBackOff"
    async with developing(cluster, admin, builder, folder, operator):
        await until_said(operator, "CrashLoopBackOff")
        edit(folder, "better")
        await until_said(operator, "hello version 2 is running after ")
    assert not operator.failed


async def test_an_interruption_leaves_no_load_request_open(
    cluster: AlphaCluster, admin: Client, builder: dev.Builder, folder: Path, operator: Operator
) -> None:
    operator.approves = False
    async with developing(cluster, admin, builder, folder, operator):
        await eventually("the question", lambda: list(operator.asked), lambda asked: len(asked) == 1)
    assert await status(cluster, operator.asked[0]) == "rejected"
    index = await open_requests.index(cluster.alpha.node, cluster.alpha.data.root)
    await eventually("the end of open requests", lambda: list(index), lambda left: left == [])


async def test_an_interruption_right_after_the_request_leaves_none_open_either(
    cluster: AlphaCluster, admin: Client, builder: dev.Builder, folder: Path, operator: Operator
) -> None:
    cluster.orders.previewing = False

    async def numbers() -> list[int]:
        return [int(key) for key in await open_requests.index(cluster.alpha.node, cluster.alpha.data.root)]

    async with developing(cluster, admin, builder, folder, operator) as running:
        (number,) = await eventually("a request", numbers, lambda found: len(found) == 1)
        running.cancel()
        cluster.orders.previewing = True
        await cluster.replace_previews()
    assert await status(cluster, number) == "rejected"
    assert operator.asked == []


async def test_somebody_else_approves_if_the_developer_may_not(
    cluster: AlphaCluster, admin: Client, builder: dev.Builder, folder: Path, operator: Operator
) -> None:
    developer = await cluster.client("developer")
    for name in ("load-request:create", "replica:read:all"):
        order = {"account": developer.credentials.account_id, "replica": ALPHA_ID, "contract": ALPHA_CONTRACT}
        await admin.call("grant-permission", order | {"permission": name})
    await eventually("the permissions", lambda: developer.has("replica:read:all"))
    async with developing(cluster, developer, builder, folder, operator):
        await until_said(operator, "somebody else may approve it")
        await admin.approve_latest(operator.asked[0])
        await until_said(operator, "hello version 1 is running after ")


@pytest.fixture
def team(servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of a local cluster that has the registry."""
    servers.registry.write_local_cluster(tmp_path / "local/team")
    monkeypatch.setenv("RESIDE_LOCAL_STATE", str(tmp_path / "local"))
    return "team"


@pytest.mark.usefixtures("builder")
async def test_programs_get_events_of_each_change(
    cluster: AlphaCluster, admin: Client, folder: Path, team: str, tmp_path: Path
) -> None:
    """The registry is that of the local cluster that is named, and so are the instance, the tag and the runtime."""
    manifest = folder / "replica.yaml"
    manifest.write_text(manifest.read_text().replace("exclusive: true", "exclusive: false"))
    person = operator_of(cluster, admin, tmp_path / "person")
    assert "add --approve" in await person.reside("dev", str(folder), "--output", "json", code=1)
    where = ("--local-cluster", team, "--context", "here", "--output", "json")
    async with person.running(
        "dev", str(folder), "--approve", "--name", "howdy", "--tag", "edge", "--runtime", RUNTIME, *where
    ) as command:
        await command.until('"event": "result"')
        save(folder, "def broken(:\n")
        await command.until("main.py:1 is not Python")
        command.interrupt()
        await command.end(130)
    lines = [line for line in command.output.splitlines() if line.startswith("{")]
    events = [json.loads(line) for line in lines]
    assert {each["event"] for each in events} == {"message", "request", "result", "failed"}
    (loaded,) = (each for each in events if each["event"] == "request")
    assert loaded["request"]["image"].startswith(f"{RESIDE_REGISTRY}/dev/hello")
    (result,) = (each for each in events if each["event"] == "result")
    assert (result["name"], result["version"], result["status"]) == ("howdy", 1, "running")
    assert list(result["seconds"]) == ["build", "validation", "approval", "start"]
    client = RegistryClient(cluster.servers.registry.mirrors)
    digest = await client.resolve(ImageReference.parse(f"{RESIDE_REGISTRY}/dev/hello:edge"))
    assert loaded["request"]["image"].endswith(digest)
