"""Readers validate: both clients reach the same verdict on every transaction that the server relays."""

import pytest
from interop.javascript import JavaScript
from interop.open_server import needs_open_server
from support.jazz_nodes import Nodes, content, until
from support.jazz_server import JazzServer

from reside.jazz import AccountId, CoMap, Group, Node, NotPermitted, ValueNotFound, now_ms

pytestmark = pytest.mark.anyio


async def _js_account(js: JavaScript, jazz: JazzServer, actor: str = "js") -> AccountId:
    made = await js("create", actor=actor, url=jazz.url, name=actor)
    await js("flush", actor=actor)
    return AccountId(made["accountID"])


async def _verdicts(value: CoMap) -> set[tuple[str, int, bool]]:
    return {(session, index, refusal is None) for session, index, refusal in value.refusals()}


@needs_open_server
async def test_a_forbidden_write_of_javascript_is_relayed_but_not_shown(
    jazz: JazzServer, js: JavaScript, nodes: Nodes
) -> None:
    python = await nodes("python")
    reader = await _js_account(js, jazz)
    group = python.create_group()
    await group.add_member(reader, "reader")
    value = group.create_map({"x": "allowed"})
    await python.flush()
    changes = [{"op": "set", "key": "x", "value": "forbidden"}]
    await js("transact", actor="js", id=value.id, changes=changes)
    await js("transact", actor="js", id=value.id, changes=changes, privacy="trusting")
    await js("flush", actor="js")
    # A third client sees the same log, so the forbidden transactions did arrive everywhere.
    third = await nodes("third")
    await group.add_member(third.account_id, "reader")
    await python.flush()
    seen = await third.load_map(value.id)
    assert len(seen.refusals()) == 3
    assert [refusal is None for _, _, refusal in seen.refusals()] == [True, False, False]
    assert content(seen) == {"x": "allowed"}
    assert content(value) == {"x": "allowed"}


async def test_self_promotion_and_foreign_role_changes_do_not_count(
    jazz: JazzServer, js: JavaScript, nodes: Nodes
) -> None:
    python = await nodes("python")
    writer = await _js_account(js, jazz)
    group = python.create_group()
    await group.add_member(writer, "writer")
    value = group.create_map({"x": 1})
    await python.flush()
    for key, role in ((writer, "admin"), (python.account_id, "revoked"), ("everyone", "writer")):
        changes = [{"op": "set", "key": key, "value": role}]
        await js("transact", actor="js", id=group.id, changes=changes, privacy="trusting")
    two = [{"op": "set", "key": writer, "value": "admin"}, {"op": "set", "key": "x", "value": "admin"}]
    await js("transact", actor="js", id=group.id, changes=two, privacy="trusting")
    await js("set", actor="js", id=value.id, key="after", value="role changes")
    await js("flush", actor="js")
    await until(value, {"x": 1, "after": "role changes"})
    assert group.members() == {python.account_id: "admin", writer: "writer"}
    assert await js("roleOf", actor="js", group=group.id, account=writer) == "writer"


async def test_everyone_reads_without_being_a_member(jazz: JazzServer, js: JavaScript, nodes: Nodes) -> None:
    python, stranger = await nodes("python"), await nodes("stranger")
    await _js_account(js, jazz)
    group = python.create_group()
    value = group.create_map({"x": "public"})
    await group.add_member("everyone", "reader")
    value.set("y", 2)
    await python.flush()
    assert await js("load", actor="js", id=value.id) == {"x": "public", "y": 2}
    theirs = await stranger.load_map(value.id)
    assert content(theirs) == {"x": "public", "y": 2}
    assert theirs.group.my_role == "reader"
    with pytest.raises(NotPermitted):
        theirs.set("x", "mine")


async def test_a_stranger_sees_nothing(nodes: Nodes) -> None:
    python, stranger = await nodes("python"), await nodes("stranger")
    value = python.create_group().create_map({"x": "private"})
    await python.flush()
    theirs = await stranger.load_map(value.id)
    assert content(theirs) == {}
    assert theirs.group.my_role is None


async def test_a_member_added_later_reads_what_was_written_before(
    jazz: JazzServer, js: JavaScript, nodes: Nodes
) -> None:
    python, late = await nodes("python"), await nodes("late")
    value = python.create_group().create_map({"x": "before"})
    group = value.group
    await python.flush()
    theirs = await late.load_map(value.id)
    assert content(theirs) == {}
    account = await _js_account(js, jazz)
    await group.add_member(late.account_id, "reader")
    await group.add_member(account, "reader")
    await python.flush()
    await until(theirs, {"x": "before"})
    assert await js("load", actor="js", id=value.id) == {"x": "before"}


@pytest.mark.parametrize("remover", ["python", "js"])
async def test_a_removed_member_cannot_read_what_is_written_afterwards(
    remover: str, jazz: JazzServer, js: JavaScript, nodes: Nodes
) -> None:
    """The read key changes at the removal, whichever side removes; the others still read."""
    python, removed, stays = await nodes("python"), await nodes("removed"), await nodes("stays")
    js_id = await _js_account(js, jazz)
    group = python.create_group()
    await group.add_member(js_id, "admin")
    await group.add_member(removed.account_id, "writer")
    await group.add_member(stays.account_id, "writer")
    value = group.create_map({"x": 1})
    await python.flush()
    theirs, others = await removed.load_map(value.id), await stays.load_map(value.id)
    assert content(theirs) == {"x": 1}
    if remover == "python":
        await js("load", actor="js", id=group.id)
        await group.remove_member(removed.account_id)
        await python.flush()
    else:
        await js("removeMember", actor="js", group=group.id, account=removed.account_id)
        await js("flush", actor="js")
    await until(theirs.group, lambda group: group.my_role is None)
    await until(group, lambda group: group.role_of(removed.account_id) is None)
    value.set("secret", 2)
    others_see = {"x": 1, "secret": 2}
    await until(others, others_see)
    await js("until", actor="js", id=value.id, expected=others_see)
    fresh = await removed.load_map(value.id)
    await until(fresh, lambda value: len(value.refusals()) == 2)
    assert content(theirs) == {"x": 1}
    with pytest.raises(NotPermitted):
        theirs.set("x", 3)


async def test_a_write_after_the_removal_does_not_count_and_a_back_dated_one_does(
    jazz: JazzServer, js: JavaScript, nodes: Nodes
) -> None:
    """Documented behaviour of Jazz: nothing proves an author's clock, so a removed member can write into its past."""
    python = await nodes("python")
    member = await _js_account(js, jazz)
    group = python.create_group()
    await group.add_member(member, "writer")
    value = group.create_map({"x": 1})
    await python.flush()
    await js("load", actor="js", id=value.id)
    before = python.now_ms()
    changes = [{"op": "set", "key": "x", "value": "late"}]
    dated = [{"op": "set", "key": "dated", "value": True}]
    await group.remove_member(member)
    removed_at = group._state.latest
    await python.flush()
    key = {"privacy": "trusting"}
    await js("transact", actor="js", id=value.id, changes=changes, madeAt=removed_at + 1, **key)
    await js("transact", actor="js", id=value.id, changes=dated, madeAt=min(before, removed_at - 1), **key)
    await until(value, {"x": 1, "dated": True})
    assert [refusal is None for _, _, refusal in value.refusals()] == [True, False, True]
    await js("untilRole", actor="js", group=group.id, account=member, role=None)
    verdicts = await js("verdicts", actor="js", id=value.id)
    assert {tuple(verdict) for verdict in verdicts} == await _verdicts(value)


@pytest.mark.parametrize(("mapping", "expected"), [("inherit", "writer"), ("reader", "reader"), ("admin", "admin")])
async def test_roles_are_inherited_from_a_parent_group_created_by_javascript(
    mapping: str, expected: str, jazz: JazzServer, js: JavaScript, nodes: Nodes
) -> None:
    python = await nodes("python")
    await _js_account(js, jazz)
    parent, child = await js("group", actor="js"), await js("group", actor="js")
    await js("extend", actor="js", group=child, parent=parent, role=mapping)
    value = await js("map", actor="js", group=child, init={"x": 1})
    await js("flush", actor="js")
    mine = await python.load_map(value)
    assert content(mine) == {}
    assert mine.group.my_role is None
    await js("addMember", actor="js", group=parent, account=python.account_id, role="writer")
    await js("flush", actor="js")
    await until(mine, {"x": 1})
    assert mine.group.my_role == expected
    if expected == "reader":
        with pytest.raises(NotPermitted):
            mine.set("y", 2)
    else:
        mine.set("y", 2)
        await js("until", actor="js", id=value, expected={"x": 1, "y": 2})


async def test_javascript_inherits_its_role_from_a_parent_group_created_by_python(
    jazz: JazzServer, js: JavaScript, nodes: Nodes
) -> None:
    """With access to the parent's read key, and sealed to the parent if the child's admin is not a member of it."""
    owner, outsider = await nodes("owner"), await nodes("outsider")
    member = await _js_account(js, jazz)
    parent = owner.create_group()
    await parent.add_member(member, "writer")
    child = owner.create_group()
    await child.extend(parent)
    inside = child.create_map({"x": "inside"})
    await owner.flush()
    outside_group = outsider.create_group()
    await outside_group.extend(await outsider.load_group(parent.id))
    outside = outside_group.create_map({"x": "outside"})
    await outsider.flush()
    assert await js("load", actor="js", id=inside.id) == {"x": "inside"}
    assert await js("load", actor="js", id=outside.id) == {"x": "outside"}
    assert content(await owner.load_map(outside.id)) == {"x": "outside"}
    await js("set", actor="js", id=outside.id, key="y", value=1)
    await until(outside, {"x": "outside", "y": 1})

    await child.revoke_extension(parent)
    inside.set("later", True)
    await owner.flush()
    await js("untilRole", actor="js", group=child.id, account=member, role=None)
    await js("until", actor="js", id=inside.id, count=2)
    await js("until", actor="js", id=inside.id, expected={"x": "inside"})


async def test_a_cycle_of_groups_gives_no_additional_role(nodes: Nodes) -> None:
    python = await nodes("python")
    first, second = python.create_group(), python.create_group()
    await first.extend(second)
    with pytest.raises(NotPermitted, match="cycle"):
        await second.extend(first)
    python._host.write_trusting(
        python._host.store.core(second.id), f"parent_{first.id}", "extend", latest=second._state.latest
    )
    assert first.parents() == {second.id: "extend"}
    assert second.parents() == {}
    other = await nodes("other")
    await python.flush()
    for group_id, parents in ((second.id, {}), (first.id, {second.id: "extend"})):
        assert (await other.load_group(group_id)).parents() == parents


async def test_write_only_members_write_and_read_only_their_own(jazz: JazzServer, js: JavaScript, nodes: Nodes) -> None:
    python, writer = await nodes("python"), await nodes("writer")
    js_writer = await _js_account(js, jazz)
    group = python.create_group()
    value = group.create_map({"x": 1})
    await group.add_member(writer.account_id, "writeOnly")
    await group.add_member(js_writer, "writeOnly")
    await python.flush()
    theirs = await writer.load_map(value.id)
    assert content(theirs) == {}
    theirs.set("python", 2)
    await js("set", actor="js", id=value.id, key="js", value=3)
    await js("until", actor="js", id=value.id, expected={"js": 3})
    await until(value, {"x": 1, "python": 2, "js": 3})
    await until(theirs, {"python": 2})


async def test_when_everyone_is_removed_strangers_can_no_longer_read(
    jazz: JazzServer, js: JavaScript, nodes: Nodes
) -> None:
    python, stranger = await nodes("python"), await nodes("stranger")
    await _js_account(js, jazz)
    group = python.create_group()
    await group.add_member("everyone", "writer")
    value = group.create_map({"x": "public"})
    await python.flush()
    theirs = await stranger.load_map(value.id)
    theirs.set("y", "a stranger's")
    await until(value, {"x": "public", "y": "a stranger's"})
    await group.remove_member("everyone")
    value.set("z", "private")
    await python.flush()
    await until(theirs.group, lambda group: group.my_role is None)
    late = await nodes("late")
    for node in (stranger, late):
        mine = await node.load_map(value.id)
        await until(mine, lambda value: len(value.refusals()) == 3)
        assert "z" not in mine
    assert "z" not in await js("load", actor="js", id=value.id)
    assert content(value) == {"x": "public", "y": "a stranger's", "z": "private"}


async def test_where_everyone_is_write_only_each_account_reads_its_own_writes(
    jazz: JazzServer, js: JavaScript, nodes: Nodes
) -> None:
    """Each stranger creates a write key, revealed to those who may read."""
    python, stranger = await nodes("python"), await nodes("stranger")
    await _js_account(js, jazz)
    group = python.create_group()
    value = group.create_map({"x": 1})
    await group.add_member("everyone", "writeOnly")
    await python.flush()
    theirs = await stranger.load_map(value.id)
    theirs.set("python", 2)
    await stranger.flush()
    await js("set", actor="js", id=value.id, key="js", value=3)
    await js("flush", actor="js")
    await until(value, {"x": 1, "python": 2, "js": 3})
    await until(theirs, {"python": 2})
    await js("until", actor="js", id=value.id, expected={"js": 3})


async def test_an_account_owns_values_of_its_own(jazz: JazzServer, js: JavaScript, nodes: Nodes) -> None:
    python, stranger = await nodes("python"), await nodes("stranger")
    value = python.account.create_map({"x": 1})
    value.set("y", 2)
    await python.flush()
    assert value.group is python.account
    assert content(await stranger.load_map(value.id)) == {}


@pytest.mark.parametrize("first", [True, False], ids=["of the first account", "of the last account"])
async def test_a_role_given_by_a_fast_clock_can_be_used_immediately(nodes: Nodes, *, first: bool) -> None:
    # Changes of one millisecond are ordered by session, and sessions by account: so both orders are tried.
    ahead: dict[str, int] = {}
    start = now_ms()
    one = await nodes("one", clock=lambda: start + ahead.get("one", 0))
    two = await nodes("two", clock=lambda: start + ahead.get("two", 0))
    fast, slow = (one, two) if (one.account_id < two.account_id) is first else (two, one)
    ahead["one" if fast is one else "two"] = 3_600_000
    group = fast.create_group()
    value = group.create_map({"x": 1})
    await group.add_member(slow.account_id, "admin")
    await fast.flush()
    theirs = await slow.load_map(value.id)
    theirs.set("y", 2)
    await theirs.group.add_member("everyone", "reader")
    await until(value, {"x": 1, "y": 2})
    await until(group, lambda group: group.role_of("everyone") == "reader")


@pytest.fixture
async def admins(nodes: Nodes) -> tuple[Node, Node, Group]:
    """Return two admins of one group."""
    one, two = await nodes("one"), await nodes("two")
    group = one.create_group()
    await group.add_member(two.account_id, "admin")
    await one.flush()
    return one, two, group


async def test_admins_cannot_remove_each_other_but_themselves(admins: tuple[Node, Node, Group]) -> None:
    one, two, group = admins
    with pytest.raises(NotPermitted, match="demote admins"):
        await group.remove_member(two.account_id)
    theirs = await two.load_group(group.id)
    await theirs.remove_member(two.account_id)
    await until(group, {one.account_id: "admin"})


async def test_a_member_that_does_not_exist_is_named(admins: tuple[Node, Node, Group]) -> None:
    _, _, group = admins
    with pytest.raises(ValueNotFound, match="co_zPfEHWFVK3AzWcsjBoGXmjTEAnLp"):
        await group.add_member(AccountId("co_zPfEHWFVK3AzWcsjBoGXmjTEAnLp"), "reader")
