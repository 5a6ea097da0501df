"""A server that lies: what it forges is refused with a reason, and harms neither the connection nor other values.

The victim is a real node on a real socket. What members may forge, signed by themselves, is in
test_forging_members.py.
"""

import copy
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from support.jazz_liar import Stage, stage
from support.jazz_nodes import content, until
from support.jazz_wire import Loose, registered

from reside.jazz import JazzTimeout
from reside.jazz.wire.encoding import b58encode

pytestmark = pytest.mark.anyio

ABSENT = "co_zPfEHWFVK3AzWcsjBoGXmjTEAnLp"
DEEP = 100_000
HUGE = 2**52
FLOOD = range(1, 20_000)


@pytest.fixture
async def on_stage() -> AsyncIterator[Stage]:
    """A victim that has loaded a map."""
    async with stage() as made:
        yield made


def _batch(on_stage: Stage, **fields: Any) -> dict[str, Any]:
    """The owner's whole session of the map with something else in it."""
    message = on_stage.liar.whole(on_stage.value.id)
    message["new"][on_stage.owner._host.writer.session] |= fields
    return message


def _transaction(on_stage: Stage, signature: str | None = None, **fields: Any) -> dict[str, Any]:
    """One more transaction of the owner, which it did not sign."""
    message = on_stage.liar.whole(on_stage.value.id)
    batch = message["new"][on_stage.owner._host.writer.session]
    batch["lastSignature"] = signature or batch["lastSignature"]
    batch["newTransactions"].append(copy.deepcopy(batch["newTransactions"][-1]) | fields)
    return message


def _content(on_stage: Stage, **fields: Any) -> dict[str, Any]:
    return on_stage.liar.whole(on_stage.value.id) | fields


def _known(on_stage: Stage, sessions: Any) -> dict[str, Any]:
    return {"action": "known", "id": on_stage.value.id, "header": True, "sessions": sessions}


def _foreign_header(on_stage: Stage) -> dict[str, Any]:
    message = on_stage.liar.whole(on_stage.value.id)
    message["header"]["uniqueness"] = "another"
    return message | {"id": ABSENT}


def _in_anothers_name(on_stage: Stage) -> dict[str, Any]:
    message = on_stage.liar.whole(on_stage.value.id)
    message["new"] = {on_stage.mallory._host.writer.session: message["new"][on_stage.owner._host.writer.session]}
    return message


FORGERIES: dict[str, tuple[Callable[[Stage], Any], str]] = {
    "malformed JSON": (lambda stage: '{"action":"content","id":', "a JSON text is malformed"),
    "no JSON object": (lambda stage: "[1]", "not an object"),
    "not a number": (lambda stage: '{"action":"known","id":NaN}', "a JSON text is malformed"),
    "deep nesting": (lambda stage: "[" * DEEP, "a JSON text is malformed"),
    "deep header": (
        lambda stage: json.dumps(_foreign_header(stage)).replace('"another"', "[" * DEEP + "]" * DEEP),
        "a JSON text is malformed",
    ),
    "no id": (lambda stage: {"action": "content"}, "names no value"),
    "an id of another kind": (lambda stage: {"action": "load", "id": "co_z\"'"}, "names no value"),
    "an id of a million characters": (
        lambda stage: {"action": "load", "id": "co_z" + "1" * 1_000_000, "header": False, "sessions": {}},
        "names no value",
    ),
    "header of another value": (_foreign_header, f"the header received for {ABSENT} belongs to co_z"),
    "header of no type": (lambda stage: _content(stage, id=ABSENT, header={}), "a header needs"),
    "sessions as a list": (lambda stage: _content(stage, new=[]), "new is not an object"),
    "a session of nobody": (lambda stage: _content(stage, new={"me": {}}), "session is malformed"),
    "a session of a million characters": (
        lambda stage: _content(stage, new={f"co_z{'1' * 1_000_000}_session_z1": {}}),
        "session is malformed",
    ),
    "transactions as text": (lambda stage: _batch(stage, newTransactions="many"), "session is malformed"),
    "a negative place": (lambda stage: _batch(stage, after=-1), "session is malformed"),
    "a place that is no integer": (lambda stage: _batch(stage, after=0.5), "session is malformed"),
    "a transaction of no kind": (lambda stage: _transaction(stage, privacy="secret"), "neither trusting nor private"),
    "a transaction without key": (lambda stage: _transaction(stage, keyUsed=None), "names no key"),
    "a time as text": (lambda stage: _transaction(stage, madeAt="now"), "madeAt is not a non-negative integer"),
    "a time of a thousand digits": (
        lambda stage: _transaction(stage, madeAt=10**1000),
        "madeAt is not a non-negative integer",
    ),
    "a time beyond all": (lambda stage: _transaction(stage, madeAt=2**60), "madeAt is not a non-negative integer"),
    "changes of no text": (lambda stage: _transaction(stage, encryptedChanges=[]), "changes or meta are not text"),
    "a bad signature": (lambda stage: _transaction(stage, madeAt=1), "does not verify"),
    "an endless signature": (
        lambda stage: _transaction(stage, signature="signature_z" + "z" * 1_000_000),
        "does not verify",
    ),
    "a session in another's name": (_in_anothers_name, "does not verify"),
    "counts as text": (lambda stage: _known(stage, {"x": "many"}), "not a non-negative integer"),
    "negative counts": (lambda stage: _known(stage, {"x": -HUGE}), "not a non-negative integer"),
    "a binary frame": (lambda stage: b"\x00\xff" * 100, "binary"),
    "a broken frame of 50 MB": (lambda stage: '{"action":"known","id":"' + "x" * 50_000_000, "JSON text is malformed"),
    "a message of 50 MB": (
        lambda stage: _transaction(stage, encryptedChanges="encrypted_U" + "A" * 50_000_000),
        "does not verify",
    ),
}


@pytest.mark.parametrize("kind", FORGERIES)
async def test_what_a_server_forges_is_refused_with_a_reason(
    kind: str, on_stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    forge, reason = FORGERIES[kind]
    caplog.set_level("WARNING", "reside.jazz")
    await on_stage.liar.say(forge(on_stage))
    await on_stage.is_unharmed()
    assert reason in caplog.text
    assert len(caplog.text) < 1000, "a reason quotes nothing endless"
    assert content(on_stage.mine) == {"x": 1}


async def test_a_gap_is_answered_with_what_is_here(on_stage: Stage) -> None:
    session = on_stage.owner._host.writer.session
    await on_stage.liar.say(_batch(on_stage, after=HUGE))
    correction = await on_stage.liar.hear(action="known", id=on_stage.value.id, isCorrection=True)
    assert correction["sessions"] == {session: 1}
    await on_stage.is_unharmed()
    assert content(on_stage.mine) == {"x": 1}


async def test_of_a_forked_session_the_branch_that_came_first_stays(
    on_stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    """A member signs two histories under one session id: whoever has one takes nothing of the other."""
    mallory, value = on_stage.mallory, on_stage.value.id
    twin = Loose(on_stage.mallory.credentials)
    await on_stage.run(twin, twin.load_map(value))
    twin._host.writer.session = mallory._host.writer.session
    twin._runtime._sync.own_sessions.add(mallory._host.writer.session)
    await _write(on_stage, mallory, {"first": 1})
    await until(on_stage.mine, {"x": 1, "first": 1})
    twin.take()
    for number in range(2):
        (await twin.load_map(value)).set("second", number)
    (branch,) = (message for message in twin.take() if message["id"] == value)
    await on_stage.liar.say(branch)
    await on_stage.is_unharmed()
    assert "does not verify" in caplog.text
    assert content(on_stage.mine) == {"x": 1, "first": 1}


async def test_what_is_announced_and_never_comes_is_an_error_in_time(on_stage: Stage) -> None:
    """A server that says that there is more than it sends can't make a caller wait for ever."""
    value = await _another_value(on_stage)
    await on_stage.liar.say(value | {"expectContentUntil": {on_stage.owner._host.writer.session: HUGE}})
    with pytest.raises(JazzTimeout, match=rf"{value['id']} could not be loaded within 0.3 s"):
        await on_stage.victim.load_map(value["id"], timeout=0.3)
    await on_stage.is_unharmed()


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda whole: whole["header"].update(uniqueness="another"), "the header received for .* belongs to"),
        (lambda whole: whole["header"].pop("meta"), "a header needs"),
        (lambda whole: whole.update(new={"me": {}}), "session is malformed"),
    ],
)
async def test_a_load_that_is_answered_wrongly_says_what_was_wrong(
    damage: Callable[[dict[str, Any]], Any], reason: str, on_stage: Stage
) -> None:
    """It is neither an empty value nor a wait without end."""
    value = await _another_value(on_stage)
    damage(value)
    on_stage.liar.answers[value["id"]] = value
    with pytest.raises(JazzTimeout, match=rf"within 0.3 s: its content was refused: .*{reason}"):
        await on_stage.victim.load_map(value["id"], timeout=0.3)
    await on_stage.is_unharmed()


async def test_made_up_acknowledgements_of_other_values_lose_nothing(on_stage: Stage) -> None:
    """What the server says to have of sessions of others is its own affair; ours are counted by us."""
    await on_stage.liar.say(_known(on_stage, {on_stage.owner._host.writer.session: HUGE, "co_z1_session_z1": HUGE}))
    await on_stage.is_unharmed()
    await _write(on_stage, on_stage.owner, {"y": 2})
    await until(on_stage.mine, {"x": 1, "y": 2})


async def test_a_flood_of_loads_for_unknown_ids_is_answered_and_leaves_nothing(on_stage: Stage) -> None:
    victim = on_stage.victim
    before = len(victim._host.store.cores)
    flood = [{"action": "load", "id": f"co_z{'1' * (n % 40)}{_b58(n)}", "header": False, "sessions": {}} for n in FLOOD]
    await on_stage.liar.say("\n".join(map(json.dumps, flood)))
    await on_stage.liar.hear(action="known", id=flood[-1]["id"], header=False)
    await on_stage.is_unharmed()
    assert len(victim._host.store.cores) == before


async def test_values_that_nobody_asked_for_do_not_reach_those_that_were_asked_for(on_stage: Stage) -> None:
    """A group and a map of a stranger are kept, as dependencies that come early are; nobody sees them by themselves."""
    hub, stranger = on_stage.liar.hub, await registered(on_stage.liar.hub, "stranger")
    group = stranger.create_group()
    value = group.create_map({"x": "strange"})
    await on_stage.carry(stranger)
    await on_stage.liar.say(*(on_stage.liar.whole(co_id) for co_id in (value.id, group.id, stranger.account_id)))
    await on_stage.is_unharmed()
    assert content(on_stage.mine) == {"x": 1}
    assert hub._host.store.core(value.id).counts() == on_stage.victim._host.store.core(value.id).counts()


async def _write(on_stage: Stage, node: Loose, values: dict[str, Any]) -> None:
    """A member writes, and the victim hears of it."""
    node.take()
    (await node.load_map(on_stage.value.id)).update(values)
    await on_stage.liar.say(*(message for message in node.take() if message["id"] == on_stage.value.id))


async def _another_value(on_stage: Stage) -> dict[str, Any]:
    value = on_stage.value.group.create_map({"late": True})
    await on_stage.carry(on_stage.owner)
    return on_stage.liar.whole(value.id)


def _b58(number: int) -> str:
    return b58encode(number.to_bytes(4, "big"))
