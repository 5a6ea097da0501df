"""`reside.testing` behaves in process as with the servers of a cluster, and needs no file of our tests."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio import subprocess
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel
from support.replicas import GREETING, greeting_contract

from reside.jazz import now_ms
from reside.model.errors import InvalidInput, NotAllowed, NotReady
from reside.replica import Call, Context, Replica
from reside.testing import cluster

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    from support.replicas import Servers

    from reside.jazz import CoMap
    from reside.testing import Cluster

pytestmark = pytest.mark.anyio

EXAMPLES = Path(__file__).parents[3] / "examples" / "replicas"


class Greeting(BaseModel):
    """Response of `greet`."""

    text: str


def build_greeter(greeting: str = "hello") -> Replica:
    replica = Replica(greeting_contract())

    @replica.method(GREETING, "greet")
    async def greet(call: Call) -> Greeting:
        call.require("greet")
        return Greeting(text=greeting)

    @replica.method(GREETING, "whoami")
    async def whoami(call: Call) -> str:
        call.require("greet:room", call.body["room"])
        return str(call.params("greet:room", call.body["room"])["title"])

    return replica


@pytest.fixture(params=["in process", "official servers"])
def new_cluster(request: pytest.FixtureRequest) -> Callable[[], AbstractAsyncContextManager[Cluster]]:
    """Return the function that starts a cluster: with everything in this process, or at the servers of production."""
    if request.param == "in process":
        return cluster
    servers: Servers = request.getfixturevalue("servers")
    return partial(cluster, sync_server=servers.jazz.url, etcd_hosts=[servers.etcd.url])


async def test_a_permission_counts_between_its_grant_and_its_revocation(new_cluster: Any) -> None:
    async with new_cluster() as test:
        greeter, ada, bob = await test.add(build_greeter(), "greeter"), await test.user("ada"), await test.user("bob")
        await test.grant(ada, greeter, "greet")  # before it runs
        async with greeter.running():
            assert (await ada.call(greeter, "greet", {}, returns=Greeting)).text == "hello"
            with pytest.raises(NotAllowed):
                await bob.call(greeter, "greet", {})
            await test.grant(bob, greeter, "greet:room", "blue", params={"title": "sir"})
            assert await bob.call(greeter, "whoami", {"room": "blue"}) == "sir"
            with pytest.raises(NotAllowed):
                await bob.call(greeter, "whoami", {"room": "red"})
            await test.revoke(ada, greeter, "greet")
            with pytest.raises(NotAllowed):
                await ada.call(greeter, "greet", {})


async def test_instances_that_are_connected_find_and_call_each_other(new_cluster: Any) -> None:
    async with new_cluster() as test:
        caller = await test.add(Replica(), "caller")
        greeters = [await test.add(build_greeter(), name) for name in ("one", "two")]
        async with greeters[0].running(), greeters[1].running(), caller.running() as context:
            assert await context.peers("greeting") == []
            await test.connect(caller, "greeting", *greeters, permissions=["greet"])
            peers = await context.peers("greeting")
            assert [peer.name for peer in peers] == ["one", "two"]
            assert await peers[1].until_granted("greet", within_s=30) == {}
            assert await peers[1].call("greet", {}) == {"text": "hello"}


async def test_several_pods_of_an_instance_share_locks_and_data_and_a_newer_version_migrates_it(
    new_cluster: Any,
) -> None:
    def build(version: int) -> Replica:
        replica = build_greeter(f"hello from {version}")

        @replica.data(GREETING)
        async def create(context: Context) -> CoMap:
            return await context.node.unique_map(context.public, "greetings", {"versions": [1]})

        if version > 1:

            @replica.migration(GREETING, version)
            async def migrate(context: Context, data: CoMap) -> None:
                data.set("versions", [*data["versions"], version])

        return replica

    async with new_cluster() as test:
        greeter, ada = await test.add(build(1), "greeter"), await test.user("ada")
        await test.grant(ada, greeter, "greet")
        async with greeter.running() as first, greeter.running() as second:
            seen = []

            async def hold(context: Context) -> None:
                async with context.transaction("shared"):
                    seen.append(context)
                    await asyncio.sleep(0)
                    seen.append(context)

            await asyncio.gather(hold(first), hold(second))
            assert seen[0] is seen[1]
            assert seen[2] is seen[3]
        greeter.replica = build(2)
        async with greeter.running() as context:
            assert context.data[GREETING]["versions"] == [1, 2]
            assert await ada.call(greeter, "greet", {}) == {"text": "hello from 2"}


async def test_main_runs_beside_the_test_and_its_error_ends_the_block() -> None:
    replica, began = Replica(), asyncio.Event()

    @replica.main
    async def main(context: Context) -> None:
        began.set()
        raise KeyError("of main")

    async with cluster() as test:
        instance = await test.add(replica, "failing")

        async def run_failing() -> None:
            async with instance.running():
                await began.wait()
                await asyncio.Event().wait()

        with pytest.raises(KeyError, match="of main"):
            await run_failing()


async def test_a_oneshot_replica_runs_to_its_end() -> None:
    replica, before = Replica(), now_ms()

    @replica.main
    async def main(context: Context) -> None:
        (await context.node.unique_map(context.public, "report")).set("at", now_ms())

    async with cluster() as test:
        report, ada = await test.add(replica, "report"), await test.user()
        await report.run()
        account = await ada.node.load_account(report.account)
        written = await ada.node.find_unique_map((await account.load_profile()).group.id, "report")
        assert written is not None
        assert written["at"] >= before


async def test_mistakes_of_a_test_are_named() -> None:
    async with cluster() as test:
        greeter, empty = await test.add(build_greeter(), "greeter"), await test.add(Replica(), "empty")
        with pytest.raises(InvalidInput, match="of greeter has no permission sing"):
            await test.grant(empty, greeter, "sing")
        with pytest.raises(InvalidInput, match="empty implements 0 contracts"):
            await test.grant(greeter, empty, "greet")
        with pytest.raises(NotReady, match="has not published the profile"):
            await (await test.user()).call(greeter, "greet", {})


@pytest.mark.parametrize("example", ["greeter", "caller"])
async def test_the_tests_beside_the_examples_pass_without_the_settings_of_this_repository(
    example: str, tmp_path: Path
) -> None:
    """As their author runs them, without etcd and Kubernetes on PATH."""
    settings = tmp_path / "pytest.ini"
    settings.write_text("[pytest]\n")
    process = await subprocess.create_subprocess_exec(
        *(sys.executable, "-m", "pytest", "-c", str(settings), "-p", "no:cacheprovider", str(EXAMPLES / example)),
        cwd=EXAMPLES / example,
        env={"HOME": os.environ["HOME"]},
        stdout=subprocess.PIPE,
    )
    out, _ = await process.communicate()
    assert process.returncode == 0, out.decode()
    assert b"1 passed" in out
