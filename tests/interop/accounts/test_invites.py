"""Invites made and accepted in Python and in JavaScript, in every combination and for every role."""

import pytest
from interop.javascript import JavaScript
from support.jazz_nodes import Nodes, content, until
from support.jazz_server import JazzServer

from reside.jazz import AccountId, CoMap, Credentials, InvalidArgument, Invite, InviteRole, Node, NotPermitted
from reside.jazz.ids import AgentId
from reside.jazz.wire.crypto import Agent, new_agent_secret

pytestmark = pytest.mark.anyio

ROLES: tuple[InviteRole, ...] = ("admin", "manager", "writer", "reader", "writeOnly")
READS = {"admin", "manager", "writer", "reader"}


async def _js_account(js: JavaScript, jazz: JazzServer) -> AccountId:
    made = await js("create", actor="js", url=jazz.url, name="js")
    await js("flush", actor="js")
    return AccountId(made["accountID"])


async def test_python_accepts_invites_of_python(nodes: Nodes) -> None:
    owner, guest = await nodes("owner"), await nodes("guest")
    for role in ROLES:
        value = owner.create_group().create_map({"x": 1})
        invite = await value.group.create_invite(role, value=value, hint="note")
        await owner.flush()
        joined = await guest.accept_invite(invite.link("https://app.example/start"))
        await guest.flush()
        assert joined.id == value.id
        assert invite.secret not in repr(invite)
        await until(value.group, lambda group, role=role: group.members().get(guest.account_id) == role)
        await until(joined, {"x": 1} if role in READS else {})
        await _write(guest, value, role)


async def test_javascript_accepts_invites_of_python(jazz: JazzServer, js: JavaScript, nodes: Nodes) -> None:
    owner = await nodes("owner")
    account = await _js_account(js, jazz)
    for role in ROLES:
        value = owner.create_group().create_map({"x": 1})
        invite = await value.group.create_invite(role)
        await owner.flush()
        await js("acceptInvite", actor="js", id=invite.value_id, secret=invite.secret)
        await js("flush", actor="js")
        await until(value.group, lambda group, role=role: group.members().get(account) == role)
        assert await js("load", actor="js", id=value.id) == ({"x": 1} if role in READS else {})
        if role != "reader":
            await js("set", actor="js", id=value.id, key="y", value=2)
            await until(value, {"x": 1, "y": 2})


async def test_python_accepts_invites_of_javascript(jazz: JazzServer, js: JavaScript, nodes: Nodes) -> None:
    guest = await nodes("guest")
    await _js_account(js, jazz)
    for role in ROLES:
        group = await js("group", actor="js")
        value_id = await js("map", actor="js", group=group, init={"x": 1})
        secret = await js("createInvite", actor="js", group=group, role=role)
        await js("flush", actor="js")
        value = await guest.accept_invite(Invite.parse(f"{value_id}/{secret}"))
        await js("untilRole", actor="js", group=group, account=guest.account_id, role=role)
        await until(value, {"x": 1} if role in READS else {})
        if role != "reader":
            (await guest.load_map(value.id)).set("y", 2)
            await js("until", actor="js", id=value_id, expected={"x": 1, "y": 2})


async def _write(guest: Node, value: CoMap, role: str) -> None:
    if role == "reader":
        with pytest.raises(NotPermitted, match=value.id):
            (await guest.load_map(value.id)).set("y", 2)
    else:
        (await guest.load_map(value.id)).set("y", 2)
        await until(value, {"x": 1, "y": 2})


async def test_links_are_those_of_jazz_tools(jazz: JazzServer, tools: JavaScript, nodes: Nodes) -> None:
    owner = await nodes("owner")
    made = await tools("create", url=jazz.url, name="worker")
    await tools("login", actor="worker", url=jazz.url, **made)
    note = owner.create_group().create_map({"text": "from Python"})
    mine = await note.group.create_invite("writer", value=note, hint="note")
    await owner.flush()
    assert await tools("accept", actor="worker", link=mine.link("https://app.example/")) == "from Python"

    theirs_id = await tools("note", actor="worker", text="from JavaScript")
    link = await tools("invite", actor="worker", id=theirs_id, role="reader", base="https://app.example/", hint="note")
    await tools("flush", actor="worker")
    invite = Invite.parse(link)
    assert (invite.value_id, invite.hint) == (theirs_id, "note")
    assert invite.link("https://app.example/") == link
    await until(await owner.accept_invite(link), {"text": "from JavaScript"})


async def test_removing_its_agent_revokes_an_invite(nodes: Nodes) -> None:
    owner, early, late = await nodes("owner"), await nodes("early"), await nodes("late")
    group = owner.create_group()
    invite = await group.create_invite("writer")
    await owner.flush()
    await early.accept_invite(invite)
    await early.flush()
    await until(group, lambda group: group.members().get(early.account_id) == "writer")
    await group.remove_member(invite.agent_id)
    await owner.flush()
    with pytest.raises(NotPermitted, match="an invite that is not revoked"):
        await late.accept_invite(invite, timeout=3)
    assert set(group.members()) == {owner.account_id, early.account_id}


async def test_an_invite_survives_a_key_rotation(nodes: Nodes) -> None:
    """Every invite's agent gets the new key, so an account that accepts later can read what was written since."""
    owner, leaver = await nodes("owner"), await nodes("leaver")
    group = owner.create_group()
    value = group.create_map({"x": 1})
    await group.add_member(leaver.account_id, "reader")
    invites = [await group.create_invite(role) for role in ROLES]
    await group.remove_member(leaver.account_id)
    value.set("y", 2)
    await owner.flush()
    for invite in invites:
        guest = await nodes("guest")
        await guest.accept_invite(invite)
        theirs = await guest.load_map(value.id)
        await until(theirs, {"x": 1, "y": 2} if theirs.group.my_role in READS else {})


async def test_an_invite_with_a_lesser_role_does_not_lower_a_role(nodes: Nodes) -> None:
    owner, manager = await nodes("owner"), await nodes("manager")
    group = owner.create_group()
    await group.add_member(manager.account_id, "manager")
    invite = await group.create_invite("reader")
    await owner.flush()
    theirs = await manager.accept_invite(invite)
    assert theirs.id == group.id
    assert (await manager.load_group(group.id)).my_role == "manager"


async def test_managers_invite_writers_and_writers_do_not_invite(nodes: Nodes) -> None:
    owner, manager, writer = await nodes("owner"), await nodes("manager"), await nodes("writer")
    group = owner.create_group()
    await group.add_member(manager.account_id, "manager")
    await group.add_member(writer.account_id, "writer")
    await owner.flush()
    managed = await manager.load_group(group.id)
    await managed.create_invite("writer")
    for role in ROLES[:2]:
        with pytest.raises(NotPermitted, match=group.id):
            await managed.create_invite(role)
    with pytest.raises(NotPermitted, match=group.id):
        await (await writer.load_group(group.id)).create_invite("reader")
    with pytest.raises(InvalidArgument, match="owner"):
        await group.create_invite("owner")  # type: ignore[arg-type] # that is the point


async def test_a_value_that_an_account_owns_has_no_invites(nodes: Nodes) -> None:
    owner, guest = await nodes("owner"), await nodes("guest")
    mine = owner.account.create_map({"x": 1})
    await owner.flush()
    secret = (await owner.create_group().create_invite("reader")).secret
    with pytest.raises(InvalidArgument, match=mine.id):
        await guest.accept_invite(Invite(mine.id, secret))
    with pytest.raises(InvalidArgument, match="no members"):
        await owner.account.create_invite("reader")


async def test_an_agent_without_an_account_is_a_member(nodes: Nodes) -> None:
    """Its id contains its public keys; group keys are sealed for it as for an account."""
    owner = await nodes("owner")
    agent = Agent.from_secret(new_agent_secret())
    group = owner.create_group()
    await group.add_member(AgentId(agent.agent_id), "writer")
    await owner.flush()
    assert group.role_of(agent.agent_id) == "writer"
    key_id = group._state.get("readKey")
    assert group._state.get(f"{key_id}_for_{agent.agent_id}").startswith("sealed_U")
    await group.remove_member(AgentId(agent.agent_id))
    assert group._state.get("readKey") != key_id
    assert group.role_of(agent.agent_id) is None


async def test_an_invite_created_offline_works_once_it_is_uploaded(jazz: JazzServer, nodes: Nodes) -> None:
    """Accepting waits for the invite, because the link may arrive before the upload is complete."""
    owner, guest = await nodes("owner"), await nodes("guest")
    group = owner.create_group()
    await owner.flush()
    theirs = await guest.load_group(group.id)
    invite = await group.create_invite("reader")
    await guest.accept_invite(invite)
    assert theirs.my_role == "reader"
    async with Node(jazz.url, Credentials.generate()) as other:
        await other.register("other")
        assert content(await other.load_group(group.id))[guest.account_id] == "reader"
