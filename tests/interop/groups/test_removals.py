"""Recorded removals: back-dated writes of a removed member are refused by the nodes whose policy says so."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from interop.javascript import JavaScript
from support.jazz_nodes import Nodes, until
from support.jazz_server import JazzServer

from reside.jazz import AccountId, CoMap, Credentials, Group, Node, SqliteStore, WritePolicy

pytestmark = pytest.mark.anyio

CAREFUL = WritePolicy(refuse_after_removal=True, max_ahead_ms=60_000, remember=True)


@dataclass
class Scene:
    """A careful node and a JavaScript member of its group.

    Attributes:
        credentials: Of the careful node.
        node: The careful node.
        member: The member's account.
        group: The group.
        value: A map in it that both wrote to.
        before: A time at which the member was a writer, ms since the epoch.
    """

    credentials: Credentials
    node: Node
    member: AccountId
    group: Group
    value: CoMap
    before: int


@pytest.fixture
async def scene(jazz: JazzServer, js: JavaScript, nodes: Nodes) -> Scene:
    """Return a scene in which the member wrote once and no member is removed."""
    credentials = Credentials.generate()
    async with Node(jazz.url, credentials) as node:
        await node.register("careful")
    node = await nodes.again(credentials, policy=CAREFUL)
    made = await js("create", actor="js", url=jazz.url, name="js")
    await js("flush", actor="js")
    member = AccountId(made["accountID"])
    group = node.create_group()
    await group.add_member(member, "writer")
    value = group.create_map({"x": 1})
    await node.flush()
    await js("set", actor="js", id=value.id, key="honest", value=True)
    await until(value, {"x": 1, "honest": True})
    return Scene(credentials, node, member, group, value, node.now_ms())


async def _write(js: JavaScript, value_id: str, key: str, made_at: int, value: object = True) -> None:
    changes = [{"op": "set", "key": key, "value": value}]
    await js("transact", actor="js", id=value_id, changes=changes, madeAt=made_at, privacy="trusting")
    await js("flush", actor="js")


async def _remove(scene: Scene) -> None:
    await scene.group.remove_member(scene.member)
    await scene.node.flush()


async def _arrived(value: CoMap, count: int) -> None:
    await until(value, lambda value: len(value.refusals()) >= count)


def _reasons(value: CoMap) -> list[str]:
    return [refusal for _, _, refusal in value.refusals() if refusal is not None]


async def test_a_back_dated_write_is_refused_and_earlier_ones_stay(js: JavaScript, nodes: Nodes, scene: Scene) -> None:
    """Another node, without the policy, takes it, as JavaScript does: documented behaviour of Jazz."""
    await _remove(scene)
    trusting = await nodes("trusting")
    await scene.group.add_member(trusting.account_id, "reader")
    await scene.node.flush()
    await _write(js, scene.value.id, "dated", scene.before)
    theirs = await trusting.load_map(scene.value.id)
    await until(theirs, {"x": 1, "honest": True, "dated": True})
    await until(scene.value, lambda value: len(_reasons(value)) == 1)
    assert scene.value.as_dict() == {"x": 1, "honest": True}
    assert "first seen here after" in _reasons(scene.value)[0]


async def test_the_next_process_refuses_it_too(js: JavaScript, nodes: Nodes, scene: Scene) -> None:
    """Seen before the restart, or written while no node of the account was connected, in any session."""
    await _remove(scene)
    await _write(js, scene.value.id, "dated", scene.before)
    await until(scene.value, lambda value: len(_reasons(value)) == 1)
    await scene.node.flush()
    await scene.node.close()
    await _write(js, scene.value.id, "meanwhile", scene.before)
    again = await (await nodes.again(scene.credentials, policy=CAREFUL)).load_map(scene.value.id)
    await _arrived(again, 4)
    assert again.as_dict() == {"x": 1, "honest": True}
    assert len(_reasons(again)) == 2
    forgetful = WritePolicy(refuse_after_removal=True)
    careless = await (await nodes.again(scene.credentials, policy=forgetful)).load_map(scene.value.id)
    assert careless.as_dict() == {"x": 1, "honest": True, "dated": True, "meanwhile": True}


async def test_a_flush_waits_for_the_note_of_a_removal(scene: Scene) -> None:
    """A process that ends after a flush has lost nothing, so the next one knows of the removal."""
    await _remove(scene)
    assert scene.node.statistics.unacknowledged == 0


async def test_a_removed_manager_gives_no_roles_in_its_past(js: JavaScript, nodes: Nodes, scene: Scene) -> None:
    """Neither while the node looks, nor in the time between two of its processes; and who it let in writes nothing."""
    friend = await nodes("friend")
    await scene.group.add_member(scene.member, "manager")
    await scene.node.flush()
    managed = scene.group._state.latest + 1
    await js("untilRole", actor="js", group=scene.group.id, account=scene.member, role="manager")
    await _remove(scene)
    await _write(js, scene.group.id, friend.account_id, managed, "writer")
    theirs = await friend.load_map(scene.value.id)
    assert theirs.group.my_role == "writer"
    await _write(js, scene.group.id, "everyone", managed + 1, "reader")
    await until_refused(scene.group, 2)
    assert scene.group.role_of(friend.account_id) is None
    await scene.node.flush()
    await scene.node.close()
    await _write(js, scene.group.id, friend.account_id, managed + 2, "admin")
    again = await nodes.again(scene.credentials, policy=CAREFUL)
    group = await again.load_group(scene.group.id)
    await until_refused(group, 3)
    assert group.role_of(friend.account_id) is None
    assert group.role_of("everyone") is None


async def until_refused(group: Group, count: int) -> None:
    """Wait until a group has so many refused transactions."""

    def enough(group: Group) -> bool:
        return sum(verdict.refusal is not None for verdict in group._state.verdicts) >= count

    await until(group, enough)


async def test_a_member_that_is_back_writes_again(js: JavaScript, nodes: Nodes, scene: Scene) -> None:
    await _remove(scene)
    await scene.group.add_member(scene.member, "writer")
    await scene.node.flush()
    await js("untilRole", actor="js", group=scene.group.id, account=scene.member, role="writer")
    await js("set", actor="js", id=scene.value.id, key="back", value=True)
    await until(scene.value, {"x": 1, "honest": True, "back": True})
    await scene.node.flush()
    await scene.node.close()
    again = await (await nodes.again(scene.credentials, policy=CAREFUL)).load_map(scene.value.id)
    assert again.as_dict() == {"x": 1, "honest": True, "back": True}


async def test_a_removal_in_a_parent_group_counts(js: JavaScript, scene: Scene) -> None:
    child = scene.group.create_child()
    value = child.create_map({"x": 1})
    await scene.node.flush()
    await js("load", actor="js", id=value.id)
    await _write(js, value.id, "honest", scene.node.now_ms())
    await until(value, {"x": 1, "honest": True})
    between = child._state.epochs()[-1]
    await _remove(scene)
    await _write(js, value.id, "dated", between)
    await until(value, lambda value: len(_reasons(value)) == 1)
    assert value.as_dict() == {"x": 1, "honest": True}


async def test_strangers_that_wrote_while_everyone_might_do_so_no_more(
    jazz: JazzServer, js: JavaScript, nodes: Nodes, scene: Scene
) -> None:
    await js("create", actor="stranger", url=jazz.url, name="stranger")
    await scene.group.add_member("everyone", "writer")
    await scene.node.flush()
    public = scene.node.now_ms()
    await scene.group.remove_member("everyone")
    await scene.node.flush()
    await scene.node.close()
    changes = [{"op": "set", "key": "dated", "value": True}]
    await js("load", actor="stranger", id=scene.value.id)
    at = {"madeAt": public, "privacy": "trusting"}
    await js("transact", actor="stranger", id=scene.value.id, changes=changes, **at)
    await js("flush", actor="stranger")
    again = await (await nodes.again(scene.credentials, policy=CAREFUL)).load_map(scene.value.id)
    await _arrived(again, 3)
    assert again.as_dict() == {"x": 1, "honest": True}


async def test_what_is_dated_ahead_is_refused(js: JavaScript, scene: Scene) -> None:
    now = scene.node.now_ms()
    await _write(js, scene.value.id, "soon", now + 30_000)
    await _write(js, scene.value.id, "x", now + 3_600_000, 2)
    await _arrived(scene.value, 4)
    assert scene.value.as_dict() == {"x": 1, "honest": True, "soon": True}
    assert "ahead of this node's clock" in _reasons(scene.value)[0]
    scene.value.set("x", 3)
    assert scene.value["x"] == 3


async def test_a_local_store_knows_what_was_seen(
    jazz: JazzServer, js: JavaScript, nodes: Nodes, scene: Scene, tmp_path: Path
) -> None:
    """What it holds was seen before; what the server has beyond it, and its author may not write any more, is new."""
    policy = WritePolicy(refuse_after_removal=True)
    async with Node(jazz.url, scene.credentials, policy=policy, store=SqliteStore(tmp_path / "jazz.db")) as node:
        await node.login()
        assert (await node.load_map(scene.value.id)).as_dict() == {"x": 1, "honest": True}
    await _remove(scene)
    await _write(js, scene.value.id, "dated", scene.before)
    again = await nodes.again(scene.credentials, policy=policy, store=SqliteStore(tmp_path / "jazz.db"))
    value = await again.load_map(scene.value.id)
    await _arrived(value, 3)
    assert value.as_dict() == {"x": 1, "honest": True}
    assert "first seen here after" in _reasons(value)[0]
