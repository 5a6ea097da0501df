"""A lying server: forged data is refused with a reason, and affects neither the connection nor other values.

The victim is a real node on a real socket. What members may forge, with their own signatures, is in
test_forging_members.py.
"""

import copy
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from interop.hostile.lying_server import Setup, attack
from support.jazz_controlled_nodes import DetachedNode, registered
from support.jazz_nodes import content, until

from reside.jazz import JazzTimeout
from reside.jazz.wire.encoding import b58encode

pytestmark = pytest.mark.anyio

ABSENT = "co_zPfEHWFVK3AzWcsjBoGXmjTEAnLp"
DEEP = 100_000
HUGE = 2**52
FLOOD = range(1, 20_000)


@pytest.fixture
async def setup() -> AsyncIterator[Setup]:
    """Yield a victim that has loaded a map."""
    async with attack() as made:
        yield made


def _batch(setup: Setup, **fields: Any) -> dict[str, Any]:
    """Return the owner's whole session of the map, with these members replaced."""
    message = setup.server.whole(setup.value.id)
    message["new"][setup.owner._host.writer.session] |= fields
    return message


def _transaction(setup: Setup, signature: str | None = None, **fields: Any) -> dict[str, Any]:
    """Return one more transaction of the owner, which the owner did not sign."""
    message = setup.server.whole(setup.value.id)
    batch = message["new"][setup.owner._host.writer.session]
    batch["lastSignature"] = signature or batch["lastSignature"]
    batch["newTransactions"].append(copy.deepcopy(batch["newTransactions"][-1]) | fields)
    return message


def _content(setup: Setup, **fields: Any) -> dict[str, Any]:
    return setup.server.whole(setup.value.id) | fields


def _known(setup: Setup, sessions: Any) -> dict[str, Any]:
    return {"action": "known", "id": setup.value.id, "header": True, "sessions": sessions}


def _foreign_header(setup: Setup) -> dict[str, Any]:
    message = setup.server.whole(setup.value.id)
    message["header"]["uniqueness"] = "another"
    return message | {"id": ABSENT}


def _in_anothers_name(setup: Setup) -> dict[str, Any]:
    message = setup.server.whole(setup.value.id)
    message["new"] = {setup.mallory._host.writer.session: message["new"][setup.owner._host.writer.session]}
    return message


FORGERIES: dict[str, tuple[Callable[[Setup], Any], str]] = {
    "malformed JSON": (lambda setup: '{"action":"content","id":', "a JSON text is malformed"),
    "no JSON object": (lambda setup: "[1]", "not an object"),
    "not a number": (lambda setup: '{"action":"known","id":NaN}', "a JSON text is malformed"),
    "deep nesting": (lambda setup: "[" * DEEP, "a JSON text is malformed"),
    "deep header": (
        lambda setup: json.dumps(_foreign_header(setup)).replace('"another"', "[" * DEEP + "]" * DEEP),
        "a JSON text is malformed",
    ),
    "no id": (lambda setup: {"action": "content"}, "has no valid value id"),
    "an id of another kind": (lambda setup: {"action": "load", "id": "co_z\"'"}, "has no valid value id"),
    "an id of a million characters": (
        lambda setup: {"action": "load", "id": "co_z" + "1" * 1_000_000, "header": False, "sessions": {}},
        "has no valid value id",
    ),
    "header of another value": (_foreign_header, f"the header received for {ABSENT} belongs to co_z"),
    "header of no type": (lambda setup: _content(setup, id=ABSENT, header={}), "a header has an unknown ruleset"),
    "sessions as a list": (lambda setup: _content(setup, new=[]), "new is not an object"),
    "a session of nobody": (lambda setup: _content(setup, new={"me": {}}), "session is malformed"),
    "a session of a million characters": (
        lambda setup: _content(setup, new={f"co_z{'1' * 1_000_000}_session_z1": {}}),
        "session is malformed",
    ),
    "transactions as text": (lambda setup: _batch(setup, newTransactions="many"), "session is malformed"),
    "a negative place": (lambda setup: _batch(setup, after=-1), "session is malformed"),
    "a place that is no integer": (lambda setup: _batch(setup, after=0.5), "session is malformed"),
    "a transaction of no kind": (lambda setup: _transaction(setup, privacy="secret"), "neither trusting nor private"),
    "a transaction without key": (lambda setup: _transaction(setup, keyUsed=None), "has no key id"),
    "a time as text": (lambda setup: _transaction(setup, madeAt="now"), "madeAt is not a non-negative integer"),
    "a time of a thousand digits": (
        lambda setup: _transaction(setup, madeAt=10**1000),
        "madeAt is not a non-negative integer",
    ),
    "a time beyond all": (lambda setup: _transaction(setup, madeAt=2**65), "madeAt is not a non-negative integer"),
    "changes of no text": (lambda setup: _transaction(setup, encryptedChanges=[]), "changes or meta are not text"),
    "a bad signature": (lambda setup: _transaction(setup, madeAt=1), "does not verify"),
    "an endless signature": (
        lambda setup: _transaction(setup, signature="signature_z" + "z" * 1_000_000),
        "does not verify",
    ),
    "a session in another's name": (_in_anothers_name, "does not verify"),
    "counts as text": (lambda setup: _known(setup, {"x": "many"}), "not a non-negative integer"),
    "negative counts": (lambda setup: _known(setup, {"x": -HUGE}), "not a non-negative integer"),
    "a binary frame": (lambda setup: b"\x00\xff" * 100, "binary"),
    "a broken frame of 50 MB": (lambda setup: '{"action":"known","id":"' + "x" * 50_000_000, "JSON text is malformed"),
    "a message of 50 MB": (
        lambda setup: _transaction(setup, encryptedChanges="encrypted_U" + "A" * 50_000_000),
        "does not verify",
    ),
}


@pytest.mark.parametrize("kind", FORGERIES)
async def test_forged_messages_of_a_server_are_refused_with_a_reason(
    kind: str, setup: Setup, caplog: pytest.LogCaptureFixture
) -> None:
    forge, reason = FORGERIES[kind]
    caplog.set_level("WARNING", "reside.jazz")
    await setup.server.say(forge(setup))
    await setup.is_unharmed()
    assert reason in caplog.text
    assert len(caplog.text) < 1000, "a reason quotes nothing endless"
    assert content(setup.mine) == {"x": 1}


async def test_the_response_to_a_gap_is_the_known_state(setup: Setup) -> None:
    session = setup.owner._host.writer.session
    await setup.server.say(_batch(setup, after=HUGE))
    correction = await setup.server.hear(action="known", id=setup.value.id, isCorrection=True)
    assert correction["sessions"] == {session: 1}
    await setup.is_unharmed()
    assert content(setup.mine) == {"x": 1}


async def test_the_first_branch_of_a_forked_session_stays(setup: Setup, caplog: pytest.LogCaptureFixture) -> None:
    """A member signs two histories with one session id: a node that has one accepts nothing of the other."""
    mallory, value = setup.mallory, setup.value.id
    twin = DetachedNode(setup.mallory.credentials)
    await setup.run(twin, twin.load_map(value))
    twin._host.writer.session = mallory._host.writer.session
    twin._runtime._exchange.own_sessions.add(mallory._host.writer.session)
    await _write(setup, mallory, {"first": 1})
    await until(setup.mine, {"x": 1, "first": 1})
    twin.take()
    for number in range(2):
        (await twin.load_map(value)).set("second", number)
    (branch,) = (message for message in twin.take() if message["id"] == value)
    await setup.server.say(branch)
    await setup.is_unharmed()
    assert "does not verify" in caplog.text
    assert content(setup.mine) == {"x": 1, "first": 1}


async def test_announced_content_that_never_arrives_is_an_error(setup: Setup) -> None:
    """A server that announces more than it sends can't make a caller wait without end."""
    value = await _another_value(setup)
    await setup.server.say(value | {"expectContentUntil": {setup.owner._host.writer.session: HUGE}})
    with pytest.raises(JazzTimeout, match=rf"{value['id']} could not be loaded within 0.3 s"):
        await setup.victim.load_map(value["id"], timeout=0.3)
    await setup.is_unharmed()


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda whole: whole["header"].update(uniqueness="another"), "the header received for .* belongs to"),
        (lambda whole: whole["header"].pop("uniqueness"), "a header needs a uniqueness"),
    ],
)
async def test_a_wrong_response_to_a_load_is_reported_with_the_reason(
    damage: Callable[[dict[str, Any]], Any], reason: str, setup: Setup
) -> None:
    """The load is neither an empty value nor a wait without end."""
    value = await _another_value(setup)
    damage(value)
    setup.server.answers[value["id"]] = value
    with pytest.raises(JazzTimeout, match=rf"within 0.3 s: its content was refused: .*{reason}"):
        await setup.victim.load_map(value["id"], timeout=0.3)
    await setup.is_unharmed()


async def test_forged_acknowledgements_of_other_values_lose_nothing(setup: Setup) -> None:
    """What the server claims to have of others' sessions is not checked; we count our own."""
    await setup.server.say(_known(setup, {setup.owner._host.writer.session: HUGE, "co_z1_session_z1": HUGE}))
    await setup.is_unharmed()
    await _write(setup, setup.owner, {"y": 2})
    await until(setup.mine, {"x": 1, "y": 2})


async def test_a_flood_of_loads_for_unknown_ids_gets_responses_and_uses_no_memory(setup: Setup) -> None:
    victim = setup.victim
    before = len(victim._host.store.cores)
    flood = [{"action": "load", "id": f"co_z{'1' * (n % 40)}{_b58(n)}", "header": False, "sessions": {}} for n in FLOOD]
    await setup.server.say("\n".join(map(json.dumps, flood)))
    await setup.server.hear(action="known", id=flood[-1]["id"], header=False)
    await setup.is_unharmed()
    assert len(victim._host.store.cores) == before


async def test_unrequested_values_do_not_affect_requested_ones(setup: Setup) -> None:
    """A group and a map of a stranger are kept, like dependencies that arrive early, but are not shown."""
    hub, stranger = setup.server.hub, await registered(setup.server.hub, "stranger")
    group = stranger.create_group()
    value = group.create_map({"x": "strange"})
    await setup.carry(stranger)
    await setup.server.say(*(setup.server.whole(co_id) for co_id in (value.id, group.id, stranger.account_id)))
    await setup.is_unharmed()
    assert content(setup.mine) == {"x": 1}
    assert hub._host.store.core(value.id).counts() == setup.victim._host.store.core(value.id).counts()


async def _write(setup: Setup, node: DetachedNode, values: dict[str, Any]) -> None:
    """Write as a member, and send that to the victim."""
    node.take()
    (await node.load_map(setup.value.id)).update(values)
    await setup.server.say(*(message for message in node.take() if message["id"] == setup.value.id))


async def _another_value(setup: Setup) -> dict[str, Any]:
    value = setup.value.group.create_map({"late": True})
    await setup.carry(setup.owner)
    return setup.server.whole(value.id)


def _b58(number: int) -> str:
    return b58encode(number.to_bytes(4, "big"))
