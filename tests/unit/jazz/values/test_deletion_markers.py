"""Deletion markers that come from a server: who may write them, and their effect on the rest of the value."""

import json

import pytest
from support.jazz_controlled_nodes import DetachedNode, exchange, exchange_during, registered

from reside.jazz import AccountId, CoMap, Group, ValueDeleted
from reside.jazz.ids import CoId, SessionId, is_delete_session, is_session_id
from reside.jazz.rules.deletion import marks_deletion, refusal_of_deletion
from reside.jazz.wire.header import parse_header
from reside.jazz.wire.random_ids import new_delete_session
from reside.jazz.wire.session import Transaction

pytestmark = pytest.mark.anyio

CO_ID = CoId("co_zValue")


def _marker(session: str, meta: str | None, key: str | None = None) -> Transaction:
    return Transaction(SessionId(session), 0, 1, "[]", key, meta, "co_zAuthor")


@pytest.mark.parametrize(
    ("session", "meta", "key", "marks"),
    [
        ("co_zA_session_d1$", '{"deleted":"co_zValue"}', None, True),
        ("co_zA_session_z1", '{"deleted":"co_zValue"}', None, False),
        ("co_zA_session_d1$", '{"deleted":"co_zOther"}', None, True),
        ("co_zA_session_d1$", '{"deleted":true}', None, False),
        ("co_zA_session_d1$", "[1]", None, False),
        ("co_zA_session_d1$", "{", None, False),
        ("co_zA_session_d1$", None, None, False),
        ("co_zA_session_d1$", '{"deleted":"co_zValue"}', "key_z1", False),
    ],
)
def test_a_marker_is_trusting_in_a_delete_session_and_names_a_value(
    session: str, meta: str | None, key: str | None, marks: bool
) -> None:
    assert marks_deletion(_marker(session, meta, key)) is marks


def test_delete_sessions_have_the_form_of_sessions() -> None:
    session = new_delete_session("co_zAbc")
    assert is_session_id(session)
    assert is_delete_session(session)
    assert not is_delete_session("co_zAbc_session_zAbc")


def test_values_without_an_owner_group_are_not_deleted() -> None:
    raw = {"type": "comap", "ruleset": {"type": "unsafeAllowAll"}, "meta": None, "uniqueness": "a"}
    marker = _marker("co_zA_session_d1$", None)
    assert refusal_of_deletion(marker, parse_header(raw), None) == "a value without an owner can't be deleted"
    owned = parse_header(raw | {"ruleset": {"type": "ownedByGroup", "group": "co_zGroup"}})
    assert refusal_of_deletion(marker, owned, None) == "the owning group is not loaded"
    group = parse_header(raw | {"ruleset": {"type": "group", "initialAdmin": "co_zA"}})
    assert refusal_of_deletion(marker, group, None) == "groups and accounts can't be deleted"


class _Setup:
    """A hub that is a plain node, a group of it with a map, and a writer on another node."""

    def __init__(self, hub: DetachedNode, writer: DetachedNode, group: Group, value: CoMap) -> None:
        self.hub, self.writer, self.group, self.value = hub, writer, group, value

    @staticmethod
    async def make() -> "_Setup":
        hub = await registered(DetachedNode())
        writer = await registered(hub, "writer")
        group = hub.create_group()
        await group.add_member(AccountId(writer.account_id), "writer")
        value = group.create_map({"a": 1})
        await exchange(hub, writer)
        return _Setup(hub, writer, group, value)

    async def theirs(self) -> CoMap:
        """Return the writer's view of the map."""
        return await exchange_during(self.hub, self.writer, self.writer.load_map(self.value.id))


async def test_clients_see_a_deleted_value_as_deleted_and_can_not_write_it() -> None:
    setup = await _Setup.make()
    theirs = await setup.theirs()
    theirs.set("b", 2)
    await exchange(setup.hub, setup.writer)
    assert setup.value.as_dict() == {"a": 1, "b": 2}
    setup.value.destroy()
    await exchange(setup.hub, setup.writer)
    assert theirs.deleted
    assert theirs.as_dict() == {}
    with pytest.raises(ValueDeleted):
        theirs.set("c", 3)


async def test_a_deleted_value_is_reported_as_completely_known() -> None:
    """So that a peer without deletions does not send it repeatedly."""
    setup = await _Setup.make()
    await setup.theirs()
    setup.value.destroy()
    setup.hub.take()
    session = f"{setup.writer.account_id}_session_zX"
    setup.hub.give({"action": "load", "id": setup.value.id, "header": True, "sessions": {session: 7}})
    (content,) = setup.hub.take()
    assert [name[-1] for name in content["new"]] == ["$"]
    assert "header" not in content
    deletion = dict.fromkeys(content["new"], 1)
    known = {"action": "known", "id": setup.value.id, "header": True}
    setup.hub.give(known | {"action": "load", "sessions": {session: 7} | deletion})
    assert setup.hub.take() == [known | {"sessions": {session: 7} | deletion}]
    batch = {"after": 7, "newTransactions": [], "lastSignature": "signature_zX"}
    setup.hub.give({"action": "content", "id": setup.value.id, "priority": 3, "new": {session: batch}})
    assert setup.hub.take() == [known | {"sessions": {session: 7} | deletion}]


async def test_on_the_next_connection_only_the_deletion_is_asked_for_and_sent() -> None:
    setup = await _Setup.make()
    setup.value.destroy()
    setup.hub.cut()
    setup.hub.connect()
    (load,) = [message for message in setup.hub.take() if message["id"] == setup.value.id]
    assert load["action"] == "load"
    assert [name[-1] for name in load["sessions"]] == ["$"]
    setup.hub.give({"action": "known", "id": setup.value.id, "header": False, "sessions": {}})
    (content,) = setup.hub.take()
    assert [name[-1] for name in content["new"]] == ["$"]
    assert content["header"]["type"] == "comap"


async def test_a_deletion_marker_of_a_writer_has_no_effect() -> None:
    setup = await _Setup.make()
    theirs = await setup.theirs()
    setup.writer._host.writer.delete(theirs._core, latest=setup.group._state.latest)
    await exchange(setup.hub, setup.writer)
    for value in (theirs, setup.value):
        assert [why for _, _, why in value.refusals()] == [
            None,
            "only an admin deletes a value, its author's role is writer",
        ]
        assert value.as_dict() == {"a": 1}
    setup.value.set("b", 2)
    await exchange(setup.hub, setup.writer)
    assert theirs.as_dict() == {"a": 1, "b": 2}


async def test_a_marker_counts_from_when_the_groups_older_history_shows_its_author_as_admin() -> None:
    """The value was validated against a part of the group. A marker becomes valid later, and watchers are called."""
    setup = await _Setup.make()
    theirs = await setup.theirs()
    setup.writer._host.writer.delete(theirs._core, latest=setup.group._state.latest)
    await exchange(setup.hub, setup.writer)
    assert not setup.value.deleted
    before = setup.value._refresh()
    key, session = setup.writer.account_id, setup.hub._host.writer.session_for(setup.group._core)
    log = setup.group._core.log(session)
    promotion = Transaction(
        session,
        len(log.transactions),
        theirs._core.deletions[0].made_at - 1,
        json.dumps([{"op": "set", "key": key, "value": "admin"}]),
        None,
        None,
        setup.hub.account_id,
    )
    log.append_own(promotion)
    setup.group._core.add(promotion)
    setup.hub._host.store.changed(setup.group._core)
    assert setup.value.deleted
    assert setup.value._refresh() > before
    assert setup.value.as_dict() == {}


async def test_a_deletion_that_is_not_alone_in_its_session_is_dropped() -> None:
    setup = await _Setup.make()
    theirs = await setup.theirs()
    setup.value.destroy()
    setup.hub.take()
    core = setup.value._core
    session = core.deletions[0].session
    second = Transaction(session, 1, 2, "[]", None, None, setup.hub.account_id)
    core.log(session).append_own(second)
    core.add(second)
    setup.hub.give({"action": "load", "id": setup.value.id, "header": True, "sessions": {}})
    (content,) = setup.hub.take()
    assert len(content["new"][session]["newTransactions"]) == 2
    setup.writer.give(content)
    assert session in theirs._core.rejected
    assert not theirs.deleted
    assert theirs.as_dict() == {"a": 1}
