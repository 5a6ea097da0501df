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
        ("co_zA_session_d1$", '{"deleted":"co_zOther"}', None, False),
        ("co_zA_session_d1$", '{"deleted":true}', None, False),
        ("co_zA_session_d1$", "[1]", None, False),
        ("co_zA_session_d1$", "{", None, False),
        ("co_zA_session_d1$", None, None, False),
        ("co_zA_session_d1$", '{"deleted":"co_zValue"}', "key_z1", False),
    ],
)
def test_a_marker_is_trusting_in_a_delete_session_and_names_its_value(
    session: str, meta: str | None, key: str | None, marks: bool
) -> None:
    assert marks_deletion(_marker(session, meta, key), CO_ID) is marks


def test_delete_sessions_have_the_form_of_sessions() -> None:
    session = new_delete_session("co_zAbc")
    assert is_session_id(session)
    assert is_delete_session(session)
    assert not is_delete_session("co_zAbc_session_zAbc")


def test_what_no_group_owns_is_not_deleted() -> None:
    raw = {"type": "comap", "ruleset": {"type": "unsafeAllowAll"}, "meta": None, "uniqueness": "a"}
    marker = _marker("co_zA_session_d1$", None)
    assert refusal_of_deletion(marker, parse_header(raw), None) == "a value without an owner can't be deleted"
    owned = parse_header(raw | {"ruleset": {"type": "ownedByGroup", "group": "co_zGroup"}})
    assert refusal_of_deletion(marker, owned, None) == "the owning group is not loaded"
    group = parse_header(raw | {"ruleset": {"type": "group", "initialAdmin": "co_zA"}})
    assert refusal_of_deletion(marker, group, None) == "groups and accounts can't be deleted"


class _Scene:
    """A hub that is a plain node, a group of it with a map, and a writer on another node."""

    def __init__(self, hub: DetachedNode, writer: DetachedNode, group: Group, value: CoMap) -> None:
        self.hub, self.writer, self.group, self.value = hub, writer, group, value

    @staticmethod
    async def make() -> "_Scene":
        hub = await registered(DetachedNode())
        writer = await registered(hub, "writer")
        group = hub.create_group()
        await group.add_member(AccountId(writer.account_id), "writer")
        value = group.create_map({"a": 1})
        await exchange(hub, writer)
        return _Scene(hub, writer, group, value)

    async def theirs(self) -> CoMap:
        """Return the writer's view of the map."""
        return await exchange_during(self.hub, self.writer, self.writer.load_map(self.value.id))


async def test_what_a_hub_deleted_its_clients_see_deleted_and_write_no_more() -> None:
    scene = await _Scene.make()
    theirs = await scene.theirs()
    theirs.set("b", 2)
    await exchange(scene.hub, scene.writer)
    assert scene.value.as_dict() == {"a": 1, "b": 2}
    scene.value.destroy()
    await exchange(scene.hub, scene.writer)
    assert theirs.deleted
    assert theirs.as_dict() == {}
    with pytest.raises(ValueDeleted):
        theirs.set("c", 3)


async def test_a_deleted_value_is_reported_as_if_all_of_it_were_here() -> None:
    """So that a peer without deletions does not send it again and again."""
    scene = await _Scene.make()
    await scene.theirs()
    scene.value.destroy()
    scene.hub.take()
    session = f"{scene.writer.account_id}_session_zX"
    scene.hub.give({"action": "load", "id": scene.value.id, "header": True, "sessions": {session: 7}})
    (content,) = scene.hub.take()
    assert [name[-1] for name in content["new"]] == ["$"]
    assert "header" not in content
    deletion = dict.fromkeys(content["new"], 1)
    known = {"action": "known", "id": scene.value.id, "header": True}
    scene.hub.give(known | {"action": "load", "sessions": {session: 7} | deletion})
    assert scene.hub.take() == [known | {"sessions": {session: 7} | deletion}]
    batch = {"after": 7, "newTransactions": [], "lastSignature": "signature_zX"}
    scene.hub.give({"action": "content", "id": scene.value.id, "priority": 3, "new": {session: batch}})
    assert scene.hub.take() == [known | {"sessions": {session: 7} | deletion}]


async def test_on_the_next_connection_only_the_deletion_is_asked_for_and_sent() -> None:
    scene = await _Scene.make()
    scene.value.destroy()
    scene.hub.cut()
    scene.hub.connect()
    (load,) = [message for message in scene.hub.take() if message["id"] == scene.value.id]
    assert load["action"] == "load"
    assert [name[-1] for name in load["sessions"]] == ["$"]
    scene.hub.give({"action": "known", "id": scene.value.id, "header": False, "sessions": {}})
    (content,) = scene.hub.take()
    assert [name[-1] for name in content["new"]] == ["$"]
    assert content["header"]["type"] == "comap"


async def test_a_writers_marker_deletes_nothing_wherever_it_arrives() -> None:
    scene = await _Scene.make()
    theirs = await scene.theirs()
    scene.writer._host.writer.delete(theirs._core, latest=scene.group._state.latest)
    await exchange(scene.hub, scene.writer)
    for value in (theirs, scene.value):
        assert [why for _, _, why in value.refusals()] == [
            None,
            "only an admin deletes a value, its author's role is writer",
        ]
        assert value.as_dict() == {"a": 1}
    scene.value.set("b", 2)
    await exchange(scene.hub, scene.writer)
    assert theirs.as_dict() == {"a": 1, "b": 2}


async def test_a_marker_counts_from_when_the_groups_older_history_shows_its_author_as_admin() -> None:
    """The value was judged by less than the whole group; what was no deletion becomes one, for its watchers too."""
    scene = await _Scene.make()
    theirs = await scene.theirs()
    scene.writer._host.writer.delete(theirs._core, latest=scene.group._state.latest)
    await exchange(scene.hub, scene.writer)
    assert not scene.value.deleted
    before = scene.value._refresh()
    key, session = scene.writer.account_id, scene.hub._host.writer.session_for(scene.group._core)
    log = scene.group._core.log(session)
    promotion = Transaction(
        session,
        len(log.transactions),
        theirs._core.deletions[0].made_at - 1,
        json.dumps([{"op": "set", "key": key, "value": "admin"}]),
        None,
        None,
        scene.hub.account_id,
    )
    log.append_own(promotion)
    scene.group._core.add(promotion)
    scene.hub._host.store.changed(scene.group._core)
    assert scene.value.deleted
    assert scene.value._refresh() > before
    assert scene.value.as_dict() == {}


async def test_a_deletion_that_is_not_alone_in_its_session_is_dropped() -> None:
    scene = await _Scene.make()
    theirs = await scene.theirs()
    scene.value.destroy()
    scene.hub.take()
    core = scene.value._core
    session = core.deletions[0].session
    second = Transaction(session, 1, 2, "[]", None, None, scene.hub.account_id)
    core.log(session).append_own(second)
    core.add(second)
    scene.hub.give({"action": "load", "id": scene.value.id, "header": True, "sessions": {}})
    (content,) = scene.hub.take()
    assert len(content["new"][session]["newTransactions"]) == 2
    scene.writer.give(content)
    assert session in theirs._core.rejected
    assert not theirs.deleted
    assert theirs.as_dict() == {"a": 1}
