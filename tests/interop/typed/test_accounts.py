"""Typed accounts: profile, root and migration, beside a schema of jazz-tools for the same account."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from reside.jazz import Credentials, InvalidState, Node, NotPermitted
from reside.jazz.typed import (
    AccountModel,
    CoMapModel,
    ListOf,
    NotLoaded,
    ProfileModel,
    ReferenceNotFound,
    SchemaError,
    SchemaMismatch,
)

if TYPE_CHECKING:
    from interop.javascript import JavaScript
    from support.jazz_nodes import Nodes
    from support.jazz_server import JazzServer

pytestmark = pytest.mark.anyio


class Item(CoMapModel):
    """An item of the list."""

    title: str


class MyProfile(ProfileModel):
    """A profile with a field that registration does not know."""

    status: str = "new"


class MyRoot(CoMapModel):
    """The root of tests/interop/js/tools.mjs, with a list."""

    theme: str = "of Python"
    items: ListOf[Item] | None = None


class Me(AccountModel):
    """An account whose migration creates what is missing."""

    profile: MyProfile
    root: MyRoot

    async def migrate(self) -> None:
        """Create the root."""
        if not self.has_root:
            self.root = MyRoot(items=ListOf([Item(title="first")]))


async def test_the_migration_creates_the_root_once(jazz: JazzServer, tools: JavaScript) -> None:
    credentials = Credentials.generate()
    async with Node(jazz.url, credentials) as node:
        me = await Me.register(node, "Ada", resolve=lambda me: me.root.items.each)
        assert (me.profile.name, me.profile.status, me.root.theme) == ("Ada", "new", "of Python")
        assert me.root.items is not None
        assert [item.title for item in me.root.items] == ["first"]
        me.profile.status = "here"
        root_id = me.root.id
        await node.flush()
    async with Node(jazz.url, credentials) as node:
        again = await Me.login(node)
        assert (again.root.id, again.profile.status, again.id) == (root_id, "here", credentials.account_id)
        with pytest.raises(NotLoaded):
            _ = again.root.items
        again = await again.ensure(lambda me: me.root.items.each)
        assert again.root.items is not None
        assert again.root.items[0].title == "first"
    login = {"accountID": credentials.account_id, "accountSecret": credentials.agent_secret}
    assert await tools("themeOf", actor="worker", url=jazz.url, **login) == "of Python"


async def test_the_root_of_javascript_is_kept(jazz: JazzServer, tools: JavaScript, nodes: Nodes) -> None:
    made = await tools("create", url=jazz.url, name="Grace")
    assert await tools("themeOf", actor="worker", url=jazz.url, **made) == "of JavaScript"
    await tools("flush", actor="worker")
    me = await Me.login(await nodes.login(made["accountID"], made["accountSecret"]))
    assert (me.profile.name, me.root.theme, me.root.items) == ("Grace", "of JavaScript", None)
    assert (me.root.group.my_role, me.has_root) == ("admin", True)


async def test_a_failed_migration_runs_again_at_the_next_login(nodes: Nodes) -> None:
    class Failing(Me):
        """Fails after it has written."""

        async def migrate(self) -> None:
            await super().migrate()
            if self.root.theme == "of Python":
                self.root.theme = "changed"
                raise LookupError("mine")

    node = await nodes("owner")
    with pytest.raises(LookupError, match="mine") as caught:
        await Failing.login(node)
    assert caught.value.__notes__ == [f"raised by Failing.migrate; the next login of {node.account_id} migrates again"]
    assert (await Failing.login(node)).root.theme == "changed"


async def test_two_devices_may_share_a_unique_root(jazz: JazzServer, nodes: Nodes) -> None:
    class Shared(AccountModel):
        """Has the same root on all devices, whichever of them creates it."""

        root: MyRoot

        async def migrate(self) -> None:
            if not self.has_root:
                self.root = await MyRoot().get_or_create_unique(self.raw, "root")

    credentials = Credentials.generate()
    async with Node(jazz.url, credentials) as node:
        await node.register("owner")
    devices = [await nodes.again(credentials) for _ in range(2)]
    first, second = await asyncio.gather(*map(Shared.login, devices))
    assert first.root.id == second.root.id
    assert first != second
    assert len({first, second, Shared(first.raw)}) == 2


@pytest.mark.parametrize("fault", ["absent", "unreadable", "a list"])
@pytest.mark.parametrize("repairs", [True, False])
async def test_a_root_that_cannot_be_loaded_can_be_replaced(fault: str, repairs: bool, nodes: Nodes) -> None:
    class Repairing(Me):
        """Replaces any root."""

        async def migrate(self) -> None:
            if repairs:
                self.root = MyRoot()

    node, other = await nodes("owner"), await nodes("other")
    wrong = {
        "absent": node.unique_map_id(node.account_id, "never made"),
        "unreadable": other.create_group().create_map({"theme": "secret"}).id,
        "a list": node.create_group().create_list().id,
    }
    await other.flush()
    node.account._writer.set("root", wrong[fault])
    if repairs:
        assert (await Repairing.login(node)).root.theme == "of Python"
        return
    errors = {"absent": ReferenceNotFound, "unreadable": NotPermitted, "a list": SchemaMismatch}
    with pytest.raises(errors[fault]):
        await Repairing.login(node)


async def test_a_migration_that_fails_at_the_registration_is_finished_by_a_login(
    jazz: JazzServer, nodes: Nodes
) -> None:
    class Failing(Me):
        """Fails before it has written."""

        async def migrate(self) -> None:
            raise LookupError("mine")

    credentials = Credentials.generate()
    async with Node(jazz.url, credentials) as node:
        with pytest.raises(LookupError, match="mine"):
            await Failing.register(node, "Ada")
    me = await Me.login(await nodes.again(credentials))
    assert (me.profile.name, me.root.theme) == ("Ada", "of Python")


async def test_a_watch_follows_the_root(nodes: Nodes) -> None:
    node = await nodes("owner")
    me = await Me.login(node)
    themes = []
    async with me.watch(lambda me: me.root) as states:
        async for state in states:
            themes.append(state.root.theme)
            if len(themes) == 1:
                me.root = MyRoot(theme="another")
            elif themes[-1] == "another":
                break
    assert themes[0] == "of Python"


async def test_wrong_uses_are_named(nodes: Nodes) -> None:
    node = await nodes("owner")

    class Bare(AccountModel):
        """Has no migration."""

        root: MyRoot

    bare = await Bare.login(node)
    with pytest.raises(InvalidState, match=r"Bare\.root: the account co_z\w+ has none yet; assign one in migrate\(\)"):
        _ = bare.root
    with pytest.raises(SchemaError, match=r"Bare\.root must be a MyRoot"):
        bare.root = Item(title="x")  # type: ignore[assignment] # the fault
    with pytest.raises(SchemaError, match="a profile must be created in a group that everyone can read"):
        bare.profile = ProfileModel(name="x")
    node.account.set_root(node.create_group().create_map({"theme": 5}))
    with pytest.raises(SchemaMismatch, match=r"MyRoot\.theme"):
        _ = (await Bare.login(node)).root.theme
    with pytest.raises(SchemaError, match="has a profile and a root only"):
        type("Wrong", (AccountModel,), {"__annotations__": {"tasks": MyRoot}, "__module__": __name__})
    with pytest.raises(SchemaError, match=r"Worse\.root must be a subclass of CoMapModel"):
        await type("Worse", (AccountModel,), {"__annotations__": {"root": str}, "__module__": __name__}).login(node)


async def test_a_profile_is_assigned_by_its_account_only(nodes: Nodes) -> None:
    owner, other = await nodes("owner"), await nodes("other")
    group = owner.create_group()
    await group.add_member("everyone", "reader")
    me = await Me.login(owner)
    me.profile = MyProfile(name="Ada", status="moved").create(group)
    await owner.flush()
    theirs = await other.load_account(owner.account_id)
    seen = await MyProfile.load(other, (await theirs.load_profile()).id)
    assert (seen.name, seen.status, theirs.name) == ("Ada", "moved", "Ada")
    with pytest.raises(NotPermitted, match="set the profile of"):
        Me(theirs).profile = seen
    with pytest.raises(NotPermitted, match="set the root of"):
        Me(theirs).root = MyRoot()
