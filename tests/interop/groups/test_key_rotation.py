"""Who can read what after a key rotation: members, write-only members, parents and children, in both languages."""

import pytest
from interop.javascript import JavaScript
from interop.open_server import needs_open_server
from support.jazz_nodes import Nodes, content, until
from support.jazz_server import JazzServer

from reside.jazz import AccountId, Credentials, Group, Node, NotPermitted
from reside.jazz.wire.crypto import ReadKey, group_sealer_value

pytestmark = pytest.mark.anyio


async def _js_account(js: JavaScript, jazz: JazzServer, actor: str = "js") -> AccountId:
    made = await js("create", actor=actor, url=jazz.url, name=actor)
    await js("flush", actor=actor)
    return AccountId(made["accountID"])


def _key(group: Group) -> str:
    return str(group._state.get("readKey"))


@pytest.mark.parametrize("remover", ["python", "js"])
async def test_a_removal_gives_write_only_members_new_keys_unknown_to_the_removed_one(
    remover: str, jazz: JazzServer, js: JavaScript, nodes: Nodes
) -> None:
    python, removed, silent = await nodes("python"), await nodes("removed"), await nodes("silent")
    js_id = await _js_account(js, jazz)
    group = python.create_group()
    await group.add_member(js_id, "admin")
    await group.add_member(removed.account_id, "reader")
    await group.add_member(silent.account_id, "writeOnly")
    value = group.create_map({"x": 1})
    await python.flush()
    theirs = await silent.load_map(value.id)
    theirs.set("before", True)
    seen = await removed.load_map(value.id)
    await until(seen, {"x": 1, "before": True})
    write_key = group._state.get(f"writeKeyFor_{silent.account_id}")
    if remover == "python":
        await js("load", actor="js", id=group.id)
        await group.remove_member(removed.account_id)
        await python.flush()
    else:
        await js("removeMember", actor="js", group=group.id, account=removed.account_id)
        await js("flush", actor="js")
    await until(theirs.group, lambda group: group._state.get(f"writeKeyFor_{silent.account_id}") != write_key)
    await until(theirs.group, lambda group: group.role_of(removed.account_id) is None)
    new_key = theirs.group._state.get(f"writeKeyFor_{silent.account_id}")
    assert f"{new_key}_for_{removed.account_id}" not in theirs.group._state.entries
    theirs.set("after", True)
    await until(value, {"x": 1, "before": True, "after": True})
    await js("until", actor="js", id=value.id, expected={"x": 1, "before": True, "after": True})
    await until(seen, lambda value: len(value.refusals()) == 3)
    assert content(seen) == {"x": 1, "before": True}
    await until(theirs, {"before": True, "after": True})


@pytest.mark.parametrize("remover", ["python", "js"])
async def test_a_removal_in_a_parent_rotates_the_keys_of_its_children(
    remover: str, jazz: JazzServer, js: JavaScript, nodes: Nodes
) -> None:
    """All three groups get new keys; members who stay in the parent can still read, through two levels."""
    python, removed, stays = await nodes("python"), await nodes("removed"), await nodes("stays")
    js_id = await _js_account(js, jazz)
    parent = python.create_group()
    for member, role in ((js_id, "admin"), (removed.account_id, "writer"), (stays.account_id, "reader")):
        await parent.add_member(member, role)  # type: ignore[arg-type] # roles, in a tuple
    child = parent.create_child()
    grandchild = child.create_child()
    value = grandchild.create_map({"x": 1})
    await python.flush()
    theirs, others = await removed.load_map(value.id), await stays.load_map(value.id)
    await until(theirs, {"x": 1})
    keys = {group.id: _key(group) for group in (parent, child, grandchild)}
    if remover == "python":
        await js("load", actor="js", id=value.id)
        await parent.remove_member(removed.account_id)
        await python.flush()
    else:
        await js("load", actor="js", id=value.id)
        await js("removeMember", actor="js", group=parent.id, account=removed.account_id)
        await js("flush", actor="js")
    for group in (parent, child, grandchild):
        await until(group, lambda group: _key(group) != keys[group.id])
    await until(grandchild, lambda group: group.role_of(removed.account_id) is None)
    value.set("secret", 2)
    await until(others, {"x": 1, "secret": 2})
    await js("until", actor="js", id=value.id, expected={"x": 1, "secret": 2})
    await until(theirs, lambda value: len(value.refusals()) == 2)
    assert content(theirs) == {"x": 1}


async def test_a_rotated_child_stays_readable_through_a_parent_without_common_members(
    jazz: JazzServer, js: JavaScript, nodes: Nodes
) -> None:
    """An account that changes the child's key and is not a member of the parent seals the new key to the parent."""
    owner, leaver = await nodes("owner"), await nodes("leaver")
    await _js_account(js, jazz)
    parent_id = await js("group", actor="js")
    await js("flush", actor="js")
    child = owner.create_group()
    await child.extend(await owner.load_group(parent_id))
    await child.add_member(leaver.account_id, "reader")
    value = child.create_map({"x": 1})
    await child.remove_member(leaver.account_id)
    value.set("y", 2)
    await owner.flush()
    assert await js("load", actor="js", id=value.id) == {"x": 1, "y": 2}
    await js("set", actor="js", id=value.id, key="z", value=3)
    await until(value, {"x": 1, "y": 2, "z": 3})


async def test_the_end_of_an_extension_changes_the_key(jazz: JazzServer, js: JavaScript, nodes: Nodes) -> None:
    python = await nodes("python")
    member = await _js_account(js, jazz)
    parent = python.create_group()
    await parent.add_member(member, "writer")
    child = parent.create_child("reader")
    value = child.create_map({"x": 1})
    await python.flush()
    assert await js("load", actor="js", id=value.id) == {"x": 1}
    assert await js("roleOf", actor="js", group=child.id, account=member) == "reader"
    before = _key(child)
    await child.revoke_extension(parent)
    after = _key(child)
    await child.revoke_extension(parent)
    assert (after != before, _key(child)) == (True, after)
    value.set("y", 2)
    await python.flush()
    await js("until", actor="js", id=value.id, count=2)
    assert await js("load", actor="js", id=value.id) == {"x": 1}
    await js("untilRole", actor="js", group=child.id, account=member, role=None)


async def test_a_reader_that_becomes_write_only_can_no_longer_read(nodes: Nodes) -> None:
    owner, member = await nodes("owner"), await nodes("member")
    group = owner.create_group()
    await group.add_member(member.account_id, "writer")
    value = group.create_map({"x": 1})
    await owner.flush()
    theirs = await member.load_map(value.id)
    await group.add_member(member.account_id, "writeOnly")
    value.set("y", 2)
    await owner.flush()
    await until(theirs.group, lambda group: group.my_role == "writeOnly")
    theirs.set("z", 3)
    await until(value, {"x": 1, "y": 2, "z": 3})
    await until(theirs, lambda value: len(value.refusals()) == 3)
    assert content(theirs) == {"x": 1, "z": 3}


async def test_if_everyone_becomes_write_only_strangers_can_no_longer_read(nodes: Nodes) -> None:
    owner, stranger = await nodes("owner"), await nodes("stranger")
    group = owner.create_group()
    await group.add_member("everyone", "reader")
    value = group.create_map({"x": 1})
    await group.add_member("everyone", "writeOnly")
    value.set("y", 2)
    await owner.flush()
    theirs = await stranger.load_map(value.id)
    assert content(theirs) == {"x": 1}
    theirs.set("z", 3)
    await until(value, {"x": 1, "y": 2, "z": 3})


async def test_a_manager_can_remove_writers_but_not_admins(nodes: Nodes) -> None:
    owner, manager, writer = await nodes("owner"), await nodes("manager"), await nodes("writer")
    group = owner.create_group()
    await group.add_member(manager.account_id, "manager")
    await group.add_member(writer.account_id, "writer")
    await owner.flush()
    managed = await manager.load_group(group.id)
    before = _key(managed)
    with pytest.raises(NotPermitted, match="managers can't"):
        await managed.remove_member(owner.account_id)
    assert _key(managed) == before
    await managed.remove_member(writer.account_id)
    await until(group, {owner.account_id: "admin", manager.account_id: "manager"})
    await until(group, lambda group: _key(group) != before)


@pytest.fixture
async def old_group(jazz: JazzServer, nodes: Nodes) -> tuple[Credentials, Group]:
    """Return a group as versions before the group sealer created it, whose public key was not published again."""
    credentials = Credentials.generate()
    async with Node(jazz.url, credentials) as node:
        await node.register("owner")
    owner = await nodes.again(credentials)
    group = owner.create_group()
    key = ReadKey.generate()
    writer = group._writer
    writer.reveal(key, owner.account_id)
    writer.set("everyone", "reader")
    writer.set("readKey", key.key_id)
    writer.set("groupSealer", None)
    await owner.flush()
    return credentials, group


async def test_an_admin_that_loads_an_old_group_adds_the_missing_sealer(
    jazz: JazzServer, js: JavaScript, nodes: Nodes, old_group: tuple[Credentials, Group]
) -> None:
    """As in JavaScript; a reader who loads it writes nothing."""
    credentials, group = old_group
    owner = await nodes.again(credentials)
    reader = await nodes("reader")
    theirs = await reader.load_group(group.id)
    await reader.flush()
    assert theirs._state.get("groupSealer") is None
    healed = await owner.load_group(group.id)
    await owner.flush()
    key = healed._writer.read_key()
    assert healed._state.get("groupSealer") == group_sealer_value(key)
    assert healed._state.get(f"{key.key_id}_for_everyone") == key.secret
    await _js_account(js, jazz)
    await js("load", actor="js", id=group.id)
    assert await js("roleOf", actor="js", group=group.id, account=reader.account_id) == "reader"
    count = len(group._state.verdicts)
    again = await nodes.again(credentials)
    await again.load_group(group.id)
    await again.flush()
    assert len((await reader.load_group(group.id))._state.verdicts) == count


async def test_a_parent_without_a_sealer_is_extended_with_an_own_key(
    jazz: JazzServer, js: JavaScript, nodes: Nodes
) -> None:
    """As JavaScript does if the parent is old and the child's admin is not a member of it."""
    owner, outsider = await nodes("owner"), await nodes("outsider")
    member = await _js_account(js, jazz)
    parent = owner.create_group()
    await parent.add_member(member, "reader")
    parent._writer.set("groupSealer", None)
    await owner.flush()
    child = outsider.create_group()
    await child.extend(await outsider.load_group(parent.id))
    value = child.create_map({"x": 1})
    await outsider.flush()
    await until(await owner.load_map(value.id), {"x": 1})
    assert await js("load", actor="js", id=value.id) == {"x": 1}


@needs_open_server
async def test_a_reveal_of_the_read_key_by_a_stranger_is_ignored(nodes: Nodes) -> None:
    """Any account may declare that a key is its own and reveal it. Members must not write with a stranger's key."""
    owner, stranger, member = await nodes("owner"), await nodes("stranger"), await nodes("member")
    group = owner.create_group()
    await owner.flush()
    forged = ReadKey(_key(group), ReadKey.generate().secret)
    evil = (await stranger.load_group(group.id))._writer
    await stranger.load_account(member.account_id)
    evil.set(f"writeKeyFor_{stranger.account_id}", forged.key_id)
    evil.set(f"{forged.key_id}_for_everyone", forged.secret)
    evil.reveal(forged, member.account_id)
    await stranger.flush()
    await until(group, lambda group: f"{forged.key_id}_for_everyone" in group._state.entries)
    await group.add_member(member.account_id, "writer")
    value = group.create_map({"x": 1})
    await owner.flush()
    theirs = await member.load_map(value.id)
    assert content(theirs) == {"x": 1}
    theirs.set("y", 2)
    await until(value, {"x": 1, "y": 2})
