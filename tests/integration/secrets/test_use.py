"""Replicas use secrets: they read them, follow them, set them, and run programs with them."""

from __future__ import annotations

import asyncio
import os
from functools import partial
from typing import TYPE_CHECKING

import pytest
from support.deleted_values import is_deleted
from support.eventually import eventually

from reside.jazz import JazzTimeout
from reside.model.errors import InvalidInput, NotAllowed, NotReady
from reside.model.secret_contract import READ_SECRET, SET_SECRET, WRITE_SECRET
from reside.replica import Replica
from reside.replica.secrets import following, handed_over, read_secret, run_program, write_secret
from reside.secrets import store

if TYPE_CHECKING:
    from pathlib import Path

    from integration.secrets.conftest import World

    from reside.testing import Instance

pytestmark = pytest.mark.anyio
PROGRAM = (
    'trap "exit 0" TERM; echo "$PASSWORD-$PORT-${RESIDE_AGENT_SECRET:-none}" >> "$0"; while :; do sleep 0.05; done'
)


async def requiring(world: World, *names: str) -> Instance:
    """Return an instance whose manifest requires these secrets."""
    made = await world.cluster.add(Replica(), "user-of-secrets")
    await world.cluster.connect(made, "secrets", world.keeper)
    for name in names:
        await world.cluster.grant(made, world.keeper, READ_SECRET, name)
    return made


async def test_a_replica_reads_a_secret_once_it_may_and_there_is_a_value(world: World, name: str) -> None:
    """It may start before the replica that its control block will name, and before anything is granted."""
    instance = await world.cluster.add(Replica(), "user-of-secrets")
    writer = await world.user(sets=name)
    async with instance.running() as context:
        with pytest.raises(NotReady, match=r"has no value that this replica may read within 0\.2 s"):
            await read_secret(context, name, within_s=0.2)
        reading = asyncio.create_task(read_secret(context, name, within_s=60))
        await world.cluster.connect(instance, "secrets", world.keeper)
        await world.cluster.grant(instance, world.keeper, READ_SECRET, name)
        await world.set(writer, name, "one")
        assert await reading == "one"
        async with following(context, name) as values:
            assert (await anext(values)).value == "one"
            await world.set(writer, name, "two")
            found = await anext(values)
            assert (found.value, found.version) == ("two", 2)
            assert "two" not in repr(found)
            await world.cluster.revoke(instance, world.keeper, READ_SECRET, name)
            with pytest.raises(NotAllowed):
                await anext(values)


async def test_a_follower_gets_each_value_when_the_map_of_the_secret_is_replaced(
    world: World, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log of a map grows with each value, so it is replaced from time to time."""
    monkeypatch.setattr(store, "REPLACE_AFTER", 6)
    instance, reader = await requiring(world, name), await world.user(reads=name)
    writer, maps = await world.user(sets=name), set()
    async with instance.running() as context:
        await world.set(writer, name, "value 1")
        async with following(context, name) as values:
            for number in range(2, 8):
                assert (await anext(values)).value == f"value {number - 1}"
                await world.set(writer, name, f"value {number}")
                maps.add((await world.entry(reader, name)).id)
            assert (await anext(values)).version == 7
    last = (await world.entry(reader, name)).id
    assert len(maps) > 2
    for replaced in maps - {last}:
        await eventually("the deletion", partial(is_deleted, reader.node, replaced))


async def test_a_replica_sets_a_secret(world: World, name: str) -> None:
    instance, reader = await requiring(world), await world.user(reads=name)
    async with instance.running() as context:
        with pytest.raises(NotAllowed):
            await write_secret(context, name, "one")
        await world.cluster.grant(instance, world.keeper, WRITE_SECRET, name)
        assert await write_secret(context, name, "one") == 1
        assert await write_secret(context, name, "two") == 2
        with pytest.raises(InvalidInput, match="is empty"):
            await write_secret(context, name, "")
    await eventually("the value", lambda: world.get(reader, name), lambda seen: seen == "two")


async def test_a_program_runs_with_secrets_and_again_with_each_new_value(
    world: World, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port, script = f"{name}-port", tmp_path / "seen"
    instance = await requiring(world, name, port)
    writer = await world.user(sets=name)
    await world.cluster.grant(writer, world.keeper, WRITE_SECRET, port)
    monkeypatch.setenv("RESIDE_AGENT_SECRET", "the replica's own")
    await world.set(writer, name, "one")
    command = ["sh", "-c", PROGRAM, str(script)]
    async with instance.running() as context:
        running = asyncio.create_task(run_program(context, command, {"PASSWORD": name, "PORT": port}))
        await world.set(writer, port, "1")
        await eventually("the program", script.exists)
        await world.set(writer, name, "two")
        expected = ["one-1-none", "two-1-none"]
        await eventually("its next run", lambda: script.read_text().split(), lambda seen: seen == expected)
        assert "PASSWORD" not in os.environ
        await world.cluster.revoke(instance, world.keeper, READ_SECRET, port)
        with pytest.raises(NotAllowed):
            await asyncio.wait_for(running, 60)


async def test_the_exit_code_of_a_program_is_returned_and_a_cancelled_one_is_ended(
    world: World, name: str, tmp_path: Path
) -> None:
    instance, writer = await requiring(world, name), await world.user(sets=name)
    await world.set(writer, name, "3")
    async with instance.running() as context:
        assert await run_program(context, ["sh", "-c", 'exit "$CODE"'], {"CODE": name}) == 3
        assert await run_program(context, ["true"], {}) == 0
        with pytest.raises(FileNotFoundError):
            await run_program(context, ["/no/such/program"], {"CODE": name})
        pid = tmp_path / "pid"
        script = f"echo $$ > {pid}.draft; mv {pid}.draft {pid}; exec sleep 300"
        running = asyncio.create_task(run_program(context, ["sh", "-c", script], {"CODE": name}))
        await eventually("the program", pid.exists)
        running.cancel()
        await asyncio.wait({running})
        assert running.cancelled()
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid.read_text()), 0)


async def test_the_outcome_of_a_call_counts_also_if_jazz_goes_away_before_the_handed_value_is_deleted(
    world: World, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a caller would take a secret that is set for one that is not."""
    writer = await world.user(sets=name)

    async def fail() -> None:
        raise JazzTimeout("no answer")

    async with handed_over(writer.node, world.keeper.account, "one") as handed:
        answer = await writer.call(world.keeper, SET_SECRET, {"name": name, "value": handed})
        monkeypatch.setattr(writer.node, "flush", fail)
    assert answer == {"name": name, "version": 1}
    monkeypatch.undo()
    assert await eventually("the deletion", partial(is_deleted, world.context.node, handed))
