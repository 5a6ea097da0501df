"""Migrations of data on a real sync server and etcd: pods that start together, deaths, failures, older code."""

from __future__ import annotations

import asyncio
import sys
from asyncio import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.replicas import GREETING, environment, greeting_contract

from reside.jazz import JazzTimeout, Node, NotPermitted
from reside.model.errors import Conflict, NotReady, ResideError
from reside.replica import Replica
from reside.replica.migrations import VERSIONS_MAP
from reside.replica.profile import load_profile

if TYPE_CHECKING:
    from support.replicas import AlphaDouble, Identity

    from reside.jazz import CoMap
    from reside.replica import Context, ReplicaSettings
    from reside.replica.profile import Profile

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[3]


def build(*, until: int = 1, readable_by: int = 1, runs: list[int] | None = None) -> Replica:
    """Return a replica whose migrations up to a version append their number to `steps` of the data, and to `runs`."""
    replica = Replica(greeting_contract())

    @replica.data(GREETING)
    async def create(context: Context) -> CoMap:
        return await context.node.unique_map(context.public, "greetings", {"steps": [1]})

    def declare(version: int) -> None:
        @replica.migration(GREETING, version, readable_by=readable_by)
        async def migrate(context: Context, data: CoMap) -> None:
            await asyncio.sleep(0)
            data.set("steps", [*data["steps"], version])
            if runs is not None:
                runs.append(version)

    for version in range(2, until + 1):
        declare(version)
    return replica


async def start(replica: Replica, settings: ReplicaSettings) -> list[int]:
    """Start and stop a replica; return the steps that its data has seen."""
    async with replica.start(settings, serve=False) as context:
        steps: list[int] = context.data[GREETING]["steps"]
        return steps


async def test_new_and_old_data_see_each_migration_once_in_order(identity: Identity) -> None:
    runs: list[int] = []
    assert await start(build(until=3, runs=runs), identity.settings) == [1, 2, 3]
    assert await start(build(until=3, runs=runs), identity.settings) == [1, 2, 3]
    assert await start(build(until=5, runs=runs), identity.settings) == [1, 2, 3, 4, 5]
    assert runs == [2, 3, 4, 5]


async def test_of_two_pods_that_start_at_once_each_migration_runs_in_one(identity: Identity) -> None:
    runs: list[int] = []
    async with (
        asyncio.timeout(60),
        build(until=1).start(identity.settings, serve=False),  # the data exists
    ):
        pods = await asyncio.gather(*(start(build(until=4, runs=runs), identity.settings) for _ in range(3)))
    assert pods == [[1, 2, 3, 4]] * 3
    assert runs == [2, 3, 4]


async def test_a_pod_that_is_killed_in_a_migration_lets_the_next_one_run_it_again(
    alpha_double: AlphaDouble, identity: Identity
) -> None:
    program = """
import asyncio
from reside.locks import LockService
from reside.replica import Replica, ReplicaSettings
from support.replicas import GREETING, greeting_contract

LockService.lock.__wrapped__.__kwdefaults__["ttl"] = 2  # the next pod does not wait for half a minute
replica = Replica(greeting_contract())

@replica.data(GREETING)
async def create(context):
    return await context.node.unique_map(context.public, "greetings", {"steps": [1]})

@replica.migration(GREETING, 2)
async def second(context, data):
    data.set("steps", [*data["steps"], 2])

@replica.migration(GREETING, 3)
async def third(context, data):
    data.set("half", True)
    await context.node.flush()
    print("in the middle", flush=True)
    await asyncio.Event().wait()

asyncio.run(replica.run(ReplicaSettings()))
"""
    variables = environment(identity, 0) | {"PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"}
    process = await subprocess.create_subprocess_exec(
        sys.executable, "-c", program, env=variables, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    async with asyncio.timeout(120):
        while b"in the middle" not in (line := await process.stdout.readline()):
            assert line, "the process ended"
    process.kill()
    await process.wait()
    with pytest.raises(NotReady, match="has not published"):
        await published(alpha_double, identity)
    runs: list[int] = []
    async with build(until=3, runs=runs).start(identity.settings, serve=False) as context:
        assert runs == [3]
        assert context.data[GREETING].as_dict() == {"steps": [1, 2, 3], "half": True}


async def test_a_migration_that_fails_ends_the_start_with_its_number_and_publishes_nothing(
    alpha_double: AlphaDouble, identity: Identity
) -> None:
    replica = build(until=2)

    @replica.migration(GREETING, 3)
    async def fail(context: Context, data: CoMap) -> None:
        raise ValueError("with a password")

    with pytest.raises(ResideError, match=f"migration 3 of the data of {GREETING} failed: ValueError$"):
        await start(replica, identity.settings)
    with pytest.raises(NotReady, match="has not published"):
        await published(alpha_double, identity)
    runs: list[int] = []
    assert await start(build(until=3, runs=runs), identity.settings) == [1, 2, 3]
    assert runs == [3], "the version of migration 2 is stored"


async def test_a_migration_is_tried_again_after_a_transient_error(identity: Identity) -> None:
    replica, attempts = build(), 0

    @replica.migration(GREETING, 2)
    async def second(context: Context, data: CoMap) -> None:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            raise JazzTimeout("the value did not arrive")
        data.set("steps", [*data["steps"], 2])

    assert await start(replica, identity.settings) == [1, 2]
    assert attempts == 2


async def test_older_code_starts_on_newer_data_and_changes_no_version(identity: Identity) -> None:
    """A pod of the version before may restart during a rollout, and runs again after a rollback."""
    runs: list[int] = []
    assert await start(build(until=3), identity.settings) == [1, 2, 3]
    assert await start(build(until=2, runs=runs), identity.settings) == [1, 2, 3]
    assert await start(build(), identity.settings) == [1, 2, 3]
    assert await start(build(until=4, runs=runs), identity.settings) == [1, 2, 3, 4]
    assert runs == [4]


async def test_older_code_is_refused_if_a_migration_says_that_it_cannot_use_the_data(identity: Identity) -> None:
    await start(build(until=2, readable_by=2), identity.settings)
    await start(build(until=3), identity.settings)
    with pytest.raises(Conflict, match="has version 3, and only code that knows version 2 can use it"):
        await start(build(), identity.settings)
    assert await start(build(until=2), identity.settings) == [1, 2, 3]


async def test_only_the_replicas_account_can_write_the_version(alpha_double: AlphaDouble, identity: Identity) -> None:
    await start(build(until=2), identity.settings)
    profile = await published(alpha_double, identity)
    async with Node(alpha_double.servers.jazz.url, await alpha_double.account("stranger")) as node:
        await node.login()
        versions = await node.find_unique_map(profile.group.id, VERSIONS_MAP)
        assert versions is not None
        (key,) = versions
        assert versions[key] == {"version": 2, "readableBy": 1}
        with pytest.raises(NotPermitted):
            versions.set(key, {"version": 1, "readableBy": 1})


async def published(alpha_double: AlphaDouble, identity: Identity) -> Profile:
    """Return the profile of a replica, as everyone sees it."""
    async with Node(alpha_double.servers.jazz.url, await alpha_double.account("reader")) as reader:
        await reader.login()
        return await load_profile(reader, identity.credentials.account_id)
