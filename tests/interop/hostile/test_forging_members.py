"""What members forge and sign, relayed by the real server: every reader refuses it with a reason, in both languages.

Servers check signatures and no permissions, so all of this is stored and relayed.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
from interop.javascript import JavaScript, javascript
from support.jazz_controlled_nodes import SwitchedNode
from support.jazz_nodes import Nodes, content, until
from support.jazz_server import JazzServer

from reside.jazz import AccountId, CoMap, Credentials, Group, Node, now_ms

pytestmark = pytest.mark.anyio

DEEP = 100_000


@dataclass
class Scene:
    """A group of an owner, with a hostile member and a victim that reads.

    Attributes:
        start: Before all of it, ms since the epoch.
    """

    owner: Node
    mallory: SwitchedNode
    victim: Node
    group: Group
    value: CoMap
    theirs: CoMap
    start: int

    async def give_role(self, role: Any) -> None:
        """Make mallory a member."""
        await self.group.add_member(self.mallory.account_id, role)
        await self.owner.flush()
        mine = await self.mallory.load_group(self.group.id)
        await until(mine, lambda group: group.my_role == role)
        await self.mallory.load(self.value.id)

    async def forge(self, co_id: str, *changes: Any, private: bool = False, made_at: int | None = None) -> None:
        """Mallory writes one transaction, and the victim has it."""
        self.mallory.transact(co_id, list(changes), private=private, made_at=made_at or now_ms())
        await self.arrives()

    async def arrives(self) -> None:
        """All that mallory wrote is here, whether it counts or not."""
        await self.mallory.flush()
        await self.victim.catch_up()

    def refusal(self, co_id: str) -> str | None:
        """Why mallory's last transaction does not count for the victim; None if it does."""
        if co_id == self.group.id:
            verdicts = [(item.transaction.session, item.refusal) for item in self.theirs.group._state.verdicts]
        else:
            verdicts = [(session, why) for session, _, why in self.theirs.refusals()]
        return [why for session, why in verdicts if session.startswith(self.mallory.account_id)][-1]

    async def is_unharmed(self) -> None:
        """Check that an honest write of the owner still reaches the victim."""
        expected = content(self.value) | {"honest": now_ms()}
        self.value.set("honest", expected["honest"])
        await until(self.theirs, lambda theirs: theirs.get("honest") == expected["honest"])
        assert content(self.theirs) == content(self.value)


@pytest.fixture(scope="module")
async def js() -> AsyncIterator[JavaScript]:
    """One JavaScript client for all of these tests."""
    async with javascript() as driver:
        yield driver


@pytest.fixture
async def scene(jazz: JazzServer, nodes: Nodes) -> AsyncIterator[Scene]:
    """Yield a group of an owner and a map of it that everyone may read."""
    start = now_ms()
    owner, victim = await nodes("owner"), await nodes("victim")
    mallory = SwitchedNode(jazz.url, Credentials.generate(), clock=now_ms)
    await mallory.online()
    await mallory.register("mallory")
    group = owner.create_group()
    await group.add_member("everyone", "reader")
    value = group.create_map({"x": 1})
    await owner.flush()
    yield Scene(owner, mallory, victim, group, value, await victim.load_map(value.id), start)
    await mallory.leave()


def _set(key: str, value: Any) -> dict[str, Any]:
    return {"op": "set", "key": key, "value": value}


async def _judged_alike(js: JavaScript, jazz: JazzServer, scene: Scene, co_id: str) -> None:
    """JavaScript finds the same transactions valid."""
    await js("create", actor="judge", url=jazz.url, name="judge")  # a new one, which loads all from the server
    await js("until", actor="judge", id=co_id, count=len(scene.victim._host.store.core(co_id).transactions))
    theirs = {tuple(verdict) for verdict in await js("verdicts", actor="judge", id=co_id)}
    value: Any = await scene.victim.load(co_id)
    if isinstance(value, Group):
        ours = {
            (item.transaction.session, item.transaction.index, item.refusal is None) for item in value._state.verdicts
        }
    else:
        ours = {(session, index, why is None) for session, index, why in value.refusals()}
    assert ours == theirs


@pytest.mark.parametrize("private", [False, True])
async def test_a_reader_s_writes_do_not_count(private: bool, scene: Scene, js: JavaScript, jazz: JazzServer) -> None:
    await scene.give_role("reader")
    await scene.forge(scene.value.id, _set("x", "forged"), private=private)
    assert scene.refusal(scene.value.id) == "its author's role at that time is reader"
    await _judged_alike(js, jazz, scene, scene.value.id)
    await scene.is_unharmed()


OF_A_WRITER: dict[str, tuple[Any, str]] = {
    "self-promotion": (lambda scene: _set(scene.mallory.account_id, "admin"), "a role is given by"),
    "demotion of the owner": (lambda scene: _set(scene.owner.account_id, "revoked"), "a role is given by"),
    "a role for everyone": (lambda scene: _set("everyone", "writer"), "a role is given by"),
    "a role that is none": (lambda scene: _set(scene.mallory.account_id, "god"), "not a role"),
    "a role that is no text": (lambda scene: _set(scene.mallory.account_id, {"admin": True}), "not a role"),
    "a read key": (lambda scene: _set("readKey", "key_zMallory"), "only admins and managers set readKey"),
    "a group sealer": (lambda scene: _set("groupSealer", "key_z1@sealer_z1"), "only admins and managers set"),
    "a revealed key": (
        lambda scene: _set(f"key_zMallory_for_{scene.victim.account_id}", "sealed_Uxx"),
        "only admins and managers reveal keys",
    ),
    "a key for everyone": (
        lambda scene: _set("key_zMallory_for_everyone", "keySecret_z1"),
        "only admins and managers reveal keys",
    ),
    "a key under another": (
        lambda scene: _set("key_z1_for_key_z2", "encrypted_U"),
        "only admins and managers reveal keys",
    ),
    "a write key of another": (
        lambda scene: _set(f"writeKeyFor_{scene.owner.account_id}", "key_z1"),
        "only admins and managers set another's write key",
    ),
    "a parent": (lambda scene: _set(f"parent_{scene.mallory.own.id}", "extend"), "only admins and managers extend"),
    "a child": (lambda scene: _set("child_co_z1", "extend"), "child extensions are obsolete"),
    "a deletion": (lambda scene: {"op": "del", "key": "readKey"}, "must set a key"),
    "an unknown operation": (lambda scene: {"op": "explode"}, "must set a key"),
    "a key of a million characters": (lambda scene: _set("k" * 1_000_000, "reader"), "a role is given by"),
}


@pytest.mark.parametrize("kind", OF_A_WRITER)
async def test_what_a_writer_forges_in_a_group_does_not_count(
    kind: str, scene: Scene, js: JavaScript, jazz: JazzServer
) -> None:
    await scene.give_role("writer")
    scene.mallory.own = scene.mallory.create_group()
    await scene.mallory.flush()
    forge, reason = OF_A_WRITER[kind]
    roles = content(scene.group)
    await scene.forge(scene.group.id, forge(scene))
    assert reason in str(scene.refusal(scene.group.id))
    assert content(scene.theirs.group) == roles
    await _judged_alike(js, jazz, scene, scene.group.id)
    await scene.is_unharmed()


async def test_two_changes_at_once_and_private_ones_do_not_count_in_a_group(
    scene: Scene, js: JavaScript, jazz: JazzServer
) -> None:
    """Also an admin's."""
    await scene.give_role("admin")
    await scene.forge(scene.group.id, _set("everyone", "writer"), _set("everyone", "writer"))
    assert scene.refusal(scene.group.id) == "a group's transaction must have exactly one change"
    await scene.forge(scene.group.id)
    assert scene.refusal(scene.group.id) == "a group's transaction must have exactly one change"
    await _judged_alike(js, jazz, scene, scene.group.id)
    await scene.is_unharmed()


async def test_a_write_after_the_removal_does_not_count_but_one_dated_back_does(
    scene: Scene, js: JavaScript, jazz: JazzServer
) -> None:
    """The documented limit of the protocol: `madeAt` is the author's word. A caller may refuse what comes late."""
    await scene.give_role("writer")
    during = scene.group._state.epochs()[-1]
    await scene.group.remove_member(scene.mallory.account_id)
    await scene.owner.flush()
    await until(
        await scene.victim.load_group(scene.group.id), lambda group: scene.mallory.account_id not in content(group)
    )
    await scene.forge(scene.value.id, _set("late", 1), made_at=now_ms() + 1000)
    assert "role at that time is reader" in str(scene.refusal(scene.value.id))
    await scene.forge(scene.value.id, _set("early", 1), made_at=scene.start - 60_000)
    assert "role at that time is none" in str(scene.refusal(scene.value.id))
    await scene.forge(scene.value.id, _set("back", 1), made_at=during)
    assert scene.refusal(scene.value.id) is None
    assert content(scene.theirs) == {"x": 1, "back": 1}
    await _judged_alike(js, jazz, scene, scene.value.id)
    await scene.is_unharmed()


IN_A_MAP: dict[str, list[Any]] = {
    "unknown operations": [{"op": "explode", "key": "x"}, {"op": None}, {"key": "x", "value": 2}],
    "no objects": [1, None, "set", [], True],
    "keys that are no text": [_set(1, 1), {"op": "set", "key": None, "value": 1}, {"op": "del", "key": {}}],  # type: ignore[arg-type] # that is the point
    "a key of a million characters": [_set("k" * 1_000_000, 1)],
    "a key that is a word of JavaScript": [_set("__proto__", {"x": 2}), _set("constructor", 1)],
}


@pytest.mark.parametrize("kind", IN_A_MAP)
async def test_nonsense_of_a_writer_in_a_map_changes_nothing_else(kind: str, scene: Scene) -> None:
    await scene.give_role("writer")
    await scene.forge(scene.value.id, *IN_A_MAP[kind])
    assert scene.theirs["x"] == 1
    await scene.is_unharmed()


@pytest.mark.parametrize("payload", ["", "{", "{}", "7", "[" * DEEP, "[NaN]", "null", '"[]"'])
async def test_changes_that_are_no_list_are_refused_and_the_next_are_read(payload: str, scene: Scene) -> None:
    await scene.give_role("writer")
    scene.mallory.transact_text(scene.value.id, payload, made_at=now_ms())
    await scene.arrives()
    assert "malformed" in str(scene.refusal(scene.value.id))
    await scene.is_unharmed()


async def test_a_cycle_of_groups_ends_and_gives_no_role(scene: Scene) -> None:
    """Three groups of mallory extend each other, and the owner's group extends one of them."""
    mallory = scene.mallory
    groups = [mallory.create_group() for _ in range(3)]
    value = groups[0].create_map({"x": 1})
    await groups[1].add_member("everyone", "reader")
    await mallory.flush()
    for place, group in enumerate(groups):
        parent = groups[(place + 1) % 3]
        mallory.transact(group.id, [_set(f"parent_{parent.id}", "extend")], private=False, made_at=now_ms() + place)
    await mallory.flush()
    await scene.group.extend(await scene.owner.load_group(groups[0].id), "reader")
    await scene.owner.flush()
    theirs = await scene.victim.load_group(groups[0].id)
    refused = [
        item.refusal
        for group in groups
        for item in (await scene.victim.load_group(group.id))._state.verdicts
        if item.refusal is not None
    ]
    assert refused == ["the parent group extends this group"]
    assert theirs.role_of(scene.victim.account_id) == "reader"
    assert theirs.role_of(scene.owner.account_id) == "reader"
    assert scene.group.role_of(AccountId(mallory.account_id)) == "reader"
    assert (await scene.victim.load(value.id)).id == value.id
    await scene.is_unharmed()
