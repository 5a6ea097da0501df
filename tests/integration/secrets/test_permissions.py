"""Secrets are read and set by permission only, and a removed reader reads no later value."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from integration.secrets.conftest import secret_replica
from support.deleted_values import is_deleted
from support.eventually import eventually
from support.jazz_history import History, carriers

from reside.jazz import NotPermitted
from reside.model.errors import Conflict, InvalidInput, NotAllowed, NotReady
from reside.model.permissions import Grant
from reside.model.secret_contract import (
    DELETE_SECRET,
    LIST_SECRETS,
    MANAGE_SECRETS,
    MAX_VALUE_BYTES,
    READ_SECRET,
    SET_SECRET,
    STATE,
    VALUE,
    WRITE_SECRET,
)
from reside.secrets import app, store

if TYPE_CHECKING:
    from integration.secrets.conftest import World

    from reside.testing import User

pytestmark = pytest.mark.anyio


async def handed(world: World, user: User, value: object) -> str:
    """Return the id of a map with a value that a user hands over; it stays."""
    group = user.node.create_group()
    await group.add_member(world.keeper.account, "reader")
    made = group.create_map({VALUE: value})  # type: ignore[dict-item] # also what no secret can have
    await user.node.flush()
    return made.id


async def test_a_secret_is_set_and_read_by_permission_only(world: World, name: str) -> None:
    reader, writer, stranger = await world.user(reads=name), await world.user(sets=name), await world.user()
    for other in (reader, stranger):
        with pytest.raises(NotAllowed, match=rf"needs the permission secret:write for {name}"):
            await world.set(other, name, "theirs")
    assert await world.get(reader, name) is None
    assert await world.set(writer, name, "one") == {"name": name, "version": 1}
    assert await world.set(writer, name, "two") == {"name": name, "version": 2}
    assert await eventually("the value", lambda: world.get(reader, name), lambda seen: seen == "two") == "two"
    for other in (writer, stranger):
        with pytest.raises(NotAllowed, match=rf"lacks secret:read for it: grant it with .*--instance {name}"):
            await world.get(other, name)
        with pytest.raises(NotAllowed):
            await other.call(world.keeper, DELETE_SECRET, {"name": f"{name}-x"})


async def test_a_reader_can_not_write_in_jazz_what_others_read(world: World, name: str) -> None:
    reader, writer = await world.user(reads=name), await world.user(sets=name)
    await world.set(writer, name, "one")
    entry = await eventually("the secret", lambda: world.entry(reader, name), lambda seen: STATE in seen)
    value = await reader.node.load_map(entry[STATE]["value"])
    for write in (lambda: entry.set(STATE, {}), lambda: value.set(VALUE, "theirs"), value.destroy):
        with pytest.raises(NotPermitted):
            write()


async def test_a_removed_reader_reads_no_later_value(world: World, name: str) -> None:
    reader, stays = await world.user(reads=name), await world.user(reads=name)
    writer = await world.user(sets=name)
    await world.set(writer, name, "value-before")
    await eventually("the value", lambda: world.get(reader, name), lambda seen: seen == "value-before")
    await world.cluster.revoke(reader, world.keeper, READ_SECRET, name)
    await world.set(writer, name, "value-after")
    await eventually("the later value", lambda: world.get(stays, name), lambda seen: seen == "value-after")
    with pytest.raises(NotAllowed):
        await world.get(reader, name)
    assert not carriers(await world.decrypted(reader), ["value-after"])
    assert carriers(await world.decrypted(stays), ["value-after"])
    await world.cluster.grant(reader, world.keeper, READ_SECRET, name)
    await eventually("the value again", lambda: world.get(reader, name), lambda seen: seen == "value-after")


async def test_a_name_without_a_value_and_permissions_is_forgotten(world: World, name: str) -> None:
    """Otherwise it would count forever, and a cluster has a number of names."""
    secrets = await store.open_secrets(world.context)
    reader, writer, manager = await world.user(reads=name), await world.user(), await world.user()
    await world.cluster.grant(manager, world.keeper, MANAGE_SECRETS)
    assert name in secrets.index
    await world.cluster.revoke(reader, world.keeper, READ_SECRET, name)
    await eventually("no name", lambda: name not in secrets.index)
    await world.cluster.grant(writer, world.keeper, WRITE_SECRET, name)
    await world.set(writer, name, "value")
    assert await writer.call(world.keeper, DELETE_SECRET, {"name": name}) == {"name": name, "version": 2}
    assert name in secrets.index
    await world.cluster.revoke(writer, world.keeper, WRITE_SECRET, name)
    assert await manager.call(world.keeper, DELETE_SECRET, {"name": name}) == {"name": name, "version": 2}
    assert name not in secrets.index
    with pytest.raises(InvalidInput, match="has no value"):
        await manager.call(world.keeper, DELETE_SECRET, {"name": name})
    await world.cluster.revoke(manager, world.keeper, MANAGE_SECRETS)


async def test_a_revocation_counts_before_its_handler_has_run(
    world: World, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a value that is set in between would be encrypted with a key that the removed reader has."""
    reader, writer = await world.user(reads=name), await world.user(sets=name)
    await world.set(writer, name, "value-early")
    with monkeypatch.context() as patched:

        async def fail(_context: object) -> None:
            raise NotReady("not now")

        patched.setattr(app, "open_secrets", fail)
        ref = world.keeper.permission(reader.account, READ_SECRET, name, None)
        await world.cluster.alpha.expect(world.keeper.identity, ref, Grant(granted=False))
        await eventually("the revocation", lambda: not world.context.rcb.is_granted(ref))
        await world.set(writer, name, "value-late")
    assert not carriers(await world.decrypted(reader), ["value-late"])
    await eventually("the handler", lambda: not (found := world.context.rcb.find(ref)) or found.settled)


async def test_no_value_is_copied_that_its_caller_did_not_write(world: World, name: str) -> None:
    """The replica can read all values: it must not copy one into a secret of somebody who may not read it."""
    theirs, mine = f"{name}-theirs", f"{name}-mine"
    victim = await world.user(sets=theirs, reads=theirs)
    attacker = await world.user(sets=mine, reads=mine)
    await world.set(victim, theirs, "treasure")
    entry = await eventually("the secret", lambda: world.entry(victim, theirs), lambda seen: STATE in seen)
    for source in (entry[STATE]["value"], await handed(world, victim, "treasure")):
        with pytest.raises(InvalidInput, match="was not written by"):
            await attacker.call(world.keeper, SET_SECRET, {"name": mine, "value": source})
    for source in (entry.id, attacker.account):
        with pytest.raises(InvalidInput, match=r"has no value|can't be read"):
            await attacker.call(world.keeper, SET_SECRET, {"name": mine, "value": source})
    assert await world.get(attacker, mine) is None
    assert not carriers(await world.decrypted(attacker), ["treasure"])


@pytest.mark.parametrize(
    ("value", "text"),
    [("", "is empty"), ("hunter2" * MAX_VALUE_BYTES, "at most 65536"), (["hunter2"], "must be a text"), (None, "text")],
    ids=["empty", "long", "list", "none"],
)
async def test_a_client_of_its_own_hands_over_no_value_beyond_the_limits(
    world: World, name: str, value: object, text: str, capfd: pytest.CaptureFixture[str]
) -> None:
    writer = await world.user(sets=name)
    source = await handed(world, writer, value)
    with pytest.raises(InvalidInput, match=text) as refused:
        await writer.call(world.keeper, SET_SECRET, {"name": name, "value": source})
    said = capfd.readouterr()
    assert "hunter2" not in f"{refused.value}{said}"
    assert name not in (await store.open_secrets(world.context)).names()


async def test_a_repeated_call_sets_once_and_an_outdated_edit_is_refused(world: World, name: str) -> None:
    writer, reader = await world.user(sets=name), await world.user(reads=name)
    first = await handed(world, writer, "one")
    for _ in range(2):
        answer = await writer.call(world.keeper, SET_SECRET, {"name": name, "value": first, "replaces": 0})
        assert answer["version"] == 1
    for outdated in (0, 2):
        with pytest.raises(Conflict, match=r"was changed meanwhile \(it has version 1 now\)"):
            await world.set(writer, name, "outdated", replaces=outdated)
    several = await asyncio.gather(*(world.set(writer, name, f"value {number}") for number in range(5)))
    assert sorted(answer["version"] for answer in several) == [2, 3, 4, 5, 6]
    last = next(number for number, answer in enumerate(several) if answer["version"] == 6)
    await eventually("the last", lambda: world.get(reader, name), lambda seen: seen == f"value {last}")


async def test_a_value_that_was_replaced_is_erased(world: World, name: str) -> None:
    reader, writer = await world.user(reads=name), await world.user(sets=name)
    await world.set(writer, name, "value-former")
    entry = await eventually("the secret", lambda: world.entry(reader, name), lambda seen: STATE in seen)
    former = entry[STATE]["value"]
    await world.set(writer, name, "value-present")
    await eventually("the deletion", lambda: is_deleted(reader.node, former))

    def stored() -> int:
        items = History(world.server.folder / "jazz.sqlite").transactions
        return sum(item.value == former and item.text != "[]" for item in items)

    await eventually("the erasure", stored, lambda left: left == 0)


async def test_a_secret_is_deleted_and_set_again(world: World, name: str) -> None:
    reader, writer = await world.user(reads=name), await world.user(sets=name)
    await world.set(writer, name, "one")
    await writer.call(world.keeper, DELETE_SECRET, {"name": name})
    await eventually("no value", lambda: world.get(reader, name), lambda seen: seen is None)
    with pytest.raises(InvalidInput, match="has no value"):
        await writer.call(world.keeper, DELETE_SECRET, {"name": name})
    assert (await world.set(writer, name, "two"))["version"] == 3
    await eventually("the new value", lambda: world.get(reader, name), lambda seen: seen == "two")


async def test_a_list_shows_who_may_read_and_set_and_to_others_nothing(world: World, name: str) -> None:
    reader, writer, manager, stranger = (
        await world.user(reads=name),
        await world.user(sets=name),
        await world.user(),
        await world.user(),
    )
    await world.cluster.grant(manager, world.keeper, MANAGE_SECRETS)
    await world.set(manager, f"{name}-other", "value-listed")
    for user, names in ((reader, [name]), (writer, [name]), (stranger, [])):
        listed = (await user.call(world.keeper, LIST_SECRETS, {}))["secrets"]
        assert [found["name"] for found in listed] == names
    every = {found["name"]: found for found in (await manager.call(world.keeper, LIST_SECRETS, {}))["secrets"]}
    assert every.keys() >= {name, f"{name}-other"}
    assert every[name]["readers"] == [reader.account]
    assert set(every[name]["writers"]) == {writer.account, manager.account}
    assert (every[name]["version"], every[f"{name}-other"]["by"]) == (None, manager.account)
    assert "value-listed" not in str(every)
    await manager.call(world.keeper, DELETE_SECRET, {"name": f"{name}-other"})
    every = {found["name"]: found for found in (await manager.call(world.keeper, LIST_SECRETS, {}))["secrets"]}
    assert f"{name}-other" not in every, "nobody has a permission on it"


async def test_the_number_of_secrets_is_limited(world: World, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = await world.user(sets=name)
    monkeypatch.setattr(store, "MAX_SECRETS", 0)
    with pytest.raises(Conflict, match="no more are possible: delete some"):
        await world.set(writer, name, "one")


async def test_a_permission_on_an_impossible_name_has_no_effect(world: World) -> None:
    other = await world.user(reads="Not A Name", sets="Not A Name")
    with pytest.raises(InvalidInput, match="name"):
        await world.set(other, "Not A Name", "one")
    assert (await other.call(world.keeper, LIST_SECRETS, {}))["secrets"] == []


def test_every_permission_of_the_contract_is_in_these_tests() -> None:
    (contract,) = secret_replica().declaration.contracts.values()
    assert set(contract.permissions) == {READ_SECRET, WRITE_SECRET, MANAGE_SECRETS}
