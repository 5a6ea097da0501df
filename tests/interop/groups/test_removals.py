"""Recorded removals: back-dated writes of a removed member are refused by the nodes whose policy says so."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from interop.javascript import JavaScript
from interop.open_server import needs_open_server
from support.jazz_nodes import Nodes, until
from support.jazz_server import JazzServer

from reside.jazz import AccountId, CoMap, Credentials, Group, Node, SqliteStore, WritePolicy

pytestmark = pytest.mark.anyio

CAREFUL = WritePolicy(refuse_after_removal=True, max_ahead_ms=60_000, remember=True)


@dataclass
class Setup:
    """A node with the careful policy, and a JavaScript member of its group.

    Attributes:
        credentials: of the careful node.
        node: the careful node.
        member: the member's account.
        group: the group.
        value: a map in it that both wrote to.
        before: a time at which the member was a writer, ms since the epoch.
    """

    credentials: Credentials
    node: Node
    member: AccountId
    group: Group
    value: CoMap
    before: int


@pytest.fixture
async def setup(jazz: JazzServer, js: JavaScript, nodes: Nodes) -> Setup:
    """Return a setup in which the member wrote once and no member is removed."""
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
    return Setup(credentials, node, member, group, value, node.now_ms())


async def _write(js: JavaScript, value_id: str, key: str, made_at: int, value: object = True) -> None:
    changes = [{"op": "set", "key": key, "value": value}]
    await js("transact", actor="js", id=value_id, changes=changes, madeAt=made_at, privacy="trusting")
    await js("flush", actor="js")


async def _remove(setup: Setup) -> None:
    await setup.group.remove_member(setup.member)
    await setup.node.flush()


async def _arrived(value: CoMap, count: int) -> None:
    await until(value, lambda value: len(value.refusals()) >= count)


def _reasons(value: CoMap) -> list[str]:
    return [refusal for _, _, refusal in value.refusals() if refusal is not None]


async def test_a_back_dated_write_is_refused_and_earlier_ones_stay(js: JavaScript, nodes: Nodes, setup: Setup) -> None:
    """Another node, without the policy, accepts it, as JavaScript does: documented behaviour of Jazz."""
    await _remove(setup)
    trusting = await nodes("trusting")
    await setup.group.add_member(trusting.account_id, "reader")
    await setup.node.flush()
    await _write(js, setup.value.id, "dated", setup.before)
    theirs = await trusting.load_map(setup.value.id)
    await until(theirs, {"x": 1, "honest": True, "dated": True})
    await until(setup.value, lambda value: len(_reasons(value)) == 1)
    assert setup.value.as_dict() == {"x": 1, "honest": True}
    assert "first seen here after" in _reasons(setup.value)[0]


async def test_the_next_process_also_refuses_it(js: JavaScript, nodes: Nodes, setup: Setup) -> None:
    """Whether it arrived before the restart, or was written while no node of the account was connected."""
    await _remove(setup)
    await _write(js, setup.value.id, "dated", setup.before)
    await until(setup.value, lambda value: len(_reasons(value)) == 1)
    await setup.node.flush()
    await setup.node.close()
    await _write(js, setup.value.id, "meanwhile", setup.before)
    again = await (await nodes.again(setup.credentials, policy=CAREFUL)).load_map(setup.value.id)
    await _arrived(again, 4)
    assert again.as_dict() == {"x": 1, "honest": True}
    assert len(_reasons(again)) == 2
    forgetful = WritePolicy(refuse_after_removal=True)
    careless = await (await nodes.again(setup.credentials, policy=forgetful)).load_map(setup.value.id)
    assert careless.as_dict() == {"x": 1, "honest": True, "dated": True, "meanwhile": True}


async def test_a_flush_waits_for_the_record_of_a_removal(setup: Setup) -> None:
    """A process that ends after a flush has lost nothing, so the next one knows of the removal."""
    await _remove(setup)
    assert setup.node.statistics.unacknowledged == 0


@pytest.mark.parametrize("dated", ["before the removal", "in the millisecond of the removal"])
async def test_a_removed_manager_gives_no_back_dated_roles(
    js: JavaScript, nodes: Nodes, setup: Setup, dated: str
) -> None:
    """Neither while the node is connected, nor between two of its processes. Accounts that it added write nothing.

    A role that is taken away in a millisecond can be used in the same millisecond (docs/jazz-protocol.md, section 5).
    """
    friend = await nodes("friend")
    await setup.group.add_member(setup.member, "manager")
    await setup.node.flush()
    await js("untilRole", actor="js", group=setup.group.id, account=setup.member, role="manager")
    added = setup.group._state.entry(setup.member)
    await _remove(setup)
    removed = setup.group._state.entry(setup.member)
    assert added is not None
    assert removed is not None
    assert (added.value, removed.value) == ("manager", "revoked")
    managed = added.made_at if dated == "before the removal" else removed.made_at
    await _write(js, setup.group.id, friend.account_id, managed, "writer")
    theirs = await friend.load_map(setup.value.id)
    assert theirs.group.my_role == "writer"
    await _write(js, setup.group.id, "everyone", managed, "reader")
    await until_refused(setup.group, 2)
    assert setup.group.role_of(friend.account_id) is None
    await setup.node.flush()
    await setup.node.close()
    await _write(js, setup.group.id, friend.account_id, managed, "admin")
    again = await nodes.again(setup.credentials, policy=CAREFUL)
    group = await again.load_group(setup.group.id)
    await until_refused(group, 3)
    assert group.role_of(friend.account_id) is None
    assert group.role_of("everyone") is None


async def until_refused(group: Group, count: int) -> None:
    """Wait until a group has so many refused transactions."""

    def enough(group: Group) -> bool:
        return sum(verdict.refusal is not None for verdict in group._state.verdicts) >= count

    await until(group, enough)


async def test_a_member_that_is_added_again_can_write(js: JavaScript, nodes: Nodes, setup: Setup) -> None:
    await _remove(setup)
    await setup.group.add_member(setup.member, "writer")
    await setup.node.flush()
    await js("untilRole", actor="js", group=setup.group.id, account=setup.member, role="writer")
    await js("set", actor="js", id=setup.value.id, key="back", value=True)
    await until(setup.value, {"x": 1, "honest": True, "back": True})
    await setup.node.flush()
    await setup.node.close()
    again = await (await nodes.again(setup.credentials, policy=CAREFUL)).load_map(setup.value.id)
    assert again.as_dict() == {"x": 1, "honest": True, "back": True}


async def test_a_removal_in_a_parent_group_counts(js: JavaScript, setup: Setup) -> None:
    child = setup.group.create_child()
    value = child.create_map({"x": 1})
    await setup.node.flush()
    await js("load", actor="js", id=value.id)
    await _write(js, value.id, "honest", setup.node.now_ms())
    await until(value, {"x": 1, "honest": True})
    between = child._state.epochs()[-1]
    await _remove(setup)
    await _write(js, value.id, "dated", between)
    await until(value, lambda value: len(_reasons(value)) == 1)
    assert value.as_dict() == {"x": 1, "honest": True}


@needs_open_server
async def test_strangers_can_no_longer_write_after_everyone_is_removed(
    jazz: JazzServer, js: JavaScript, nodes: Nodes, setup: Setup
) -> None:
    await js("create", actor="stranger", url=jazz.url, name="stranger")
    await setup.group.add_member("everyone", "writer")
    await setup.node.flush()
    public = setup.node.now_ms()
    await setup.group.remove_member("everyone")
    await setup.node.flush()
    await setup.node.close()
    changes = [{"op": "set", "key": "dated", "value": True}]
    await js("load", actor="stranger", id=setup.value.id)
    at = {"madeAt": public, "privacy": "trusting"}
    await js("transact", actor="stranger", id=setup.value.id, changes=changes, **at)
    await js("flush", actor="stranger")
    again = await (await nodes.again(setup.credentials, policy=CAREFUL)).load_map(setup.value.id)
    await _arrived(again, 3)
    assert again.as_dict() == {"x": 1, "honest": True}


async def test_writes_dated_in_the_future_are_refused(js: JavaScript, setup: Setup) -> None:
    now = setup.node.now_ms()
    await _write(js, setup.value.id, "soon", now + 30_000)
    await _write(js, setup.value.id, "x", now + 3_600_000, 2)
    await _arrived(setup.value, 4)
    assert setup.value.as_dict() == {"x": 1, "honest": True, "soon": True}
    assert "ahead of this node's clock" in _reasons(setup.value)[0]
    setup.value.set("x", 3)
    assert setup.value["x"] == 3


async def test_content_of_a_local_store_counts_as_seen(
    jazz: JazzServer, js: JavaScript, nodes: Nodes, setup: Setup, tmp_path: Path
) -> None:
    """Values in the store were seen before. Later ones on the server, by an author without the role, are new."""
    policy = WritePolicy(refuse_after_removal=True)
    async with Node(jazz.url, setup.credentials, policy=policy, store=SqliteStore(tmp_path / "jazz.db")) as node:
        await node.login()
        assert (await node.load_map(setup.value.id)).as_dict() == {"x": 1, "honest": True}
    await _remove(setup)
    await _write(js, setup.value.id, "dated", setup.before)
    again = await nodes.again(setup.credentials, policy=policy, store=SqliteStore(tmp_path / "jazz.db"))
    value = await again.load_map(setup.value.id)
    await _arrived(value, 3)
    assert value.as_dict() == {"x": 1, "honest": True}
    assert "first seen here after" in _reasons(value)[0]
