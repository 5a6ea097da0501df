"""A value is there in full or not at all, wherever the replica dies, and whatever strangers upload."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

import pytest
from integration.alpha.deaths import Death, death_at
from integration.secrets.conftest import World, running, secret_replica
from interop.strangers.stranger import set_key, stranger, trusting
from support.deleted_values import is_deleted
from support.eventually import eventually
from support.jazz_server import jazz_server

from reside.jazz.wire.header import unique_header
from reside.model.secret_contract import STATE, secret_by_name
from reside.secrets import store
from reside.secrets.app import erase_left
from reside.secrets.store import ROOT_NAME, open_secrets
from reside.testing import cluster as in_process

if TYPE_CHECKING:
    from support.jazz_server import JazzServer

    from reside.jazz import Node
    from reside.testing import User

pytestmark = pytest.mark.anyio


async def write(world: World, name: str, value: str) -> None:
    """Do what `set-secret` does."""
    secrets = await open_secrets(world.context)
    async with secrets.transaction() as tx:
        await tx.run_exclusively(partial(secrets.write, name, value, by="co_z1", handed="co_z2"))


async def seen(world: World, reader: User, name: str, made: list[str]) -> tuple[str | None, list[str]]:
    """Return the value, and which of the maps that were made are not deleted."""
    return await world.get(reader, name), [m for m in made if not await is_deleted(world.context.node, m)]


async def test_a_value_is_whole_and_no_other_is_left_wherever_the_replica_dies(server: JazzServer) -> None:
    """The points of death move on until nobody dies; each time another value is to be set."""
    async with in_process(sync_server=server.url) as cluster:
        keeper = await cluster.add(secret_replica(), "secret")
        name, made, expected = "fragile", [], "value 0"
        async with running(server, cluster, keeper) as world:
            reader = await world.user(reads=name)
            await write(world, name, expected)
        for point in count(1):
            later = f"value {point}"
            async with running(server, cluster, keeper) as world:
                entry = await (await open_secrets(world.context)).find(name)
                assert entry is not None
                made.append(str(entry[STATE]["value"]))
                with death_at(world.context, point) as dead:
                    with suppress(Death):
                        await write(world, name, later)
                    died = dead.is_set()
            async with running(server, cluster, keeper) as world:
                entry = await (await open_secrets(world.context)).find(name)
                assert entry is not None
                current = str(entry[STATE]["value"])
                value, left = await eventually(
                    f"one value after a death at write {point}",
                    partial(seen, world, reader, name, [*made, current]),
                    lambda found, current=current: set(found[1]) == {current} and found[0] is not None,
                )
                assert left
                assert value in (expected, later)
                assert await eventually("nothing stale", lambda entry=entry: entry.get("stale") == [])
                expected = value
            if not died:
                assert value == later
                assert point > 4
                break


async def test_readers_find_a_value_after_a_death_between_its_new_map_and_the_look_up(
    world: World, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The start after it deletes the map before, to which the look-up still points."""
    monkeypatch.setattr(store, "REPLACE_AFTER", 0)
    reader = await world.user(reads=name)
    await write(world, name, "kept")
    secrets = await open_secrets(world.context)
    before = secrets.index[name]
    with death_at(world.context, 3), suppress(Death):  # the map, its place in the index, the look-up
        await write(world, name, "never set")
    assert secrets.index[name] != before
    await erase_left(world.context)
    assert await is_deleted(world.context.node, before)
    assert await world.get(reader, name) == "kept"


async def squatted(node: Node, url: str, group: str, name: str, forged: list[dict[str, object]]) -> None:
    """Upload a value under a name that the replica will use."""
    async with stranger(url) as who:
        header = unique_header("comap", group, name)
        message = who.content(header.co_id, [trusting(forged, made_at=1)])
        await who.send(message | {"header": dict(header.raw)})
        assert await who.sessions(header.co_id)
    await node.catch_up()


async def test_what_strangers_upload_under_the_names_does_not_count() -> None:
    """The sync server runs as the official one does, so it accepts them."""
    with jazz_server(MODE="open") as server:
        async with in_process(sync_server=server.url) as cluster:
            keeper = await cluster.add(secret_replica(), "secret")
            user = await cluster.user()
            account = await user.node.load_account(keeper.account)
            public = (await account.load_profile()).group.id
            forged = [set_key(key, "co_zForged") for key in ("index", "target", "state", "value")]
            for name in (ROOT_NAME, secret_by_name("taken")):
                await squatted(user.node, server.url, public, name, forged)
            async with running(server, cluster, keeper) as world:
                assert world.context.public.id == public
                writer, reader = await world.user(sets="taken"), await world.user(reads="taken")
                await world.set(writer, "taken", "genuine")
                await eventually("the value", lambda: world.get(reader, "taken"), lambda found: found == "genuine")
