"""The user manager gives permissions of other replicas to users by name, in sets and apart from sets."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from integration.alpha.deaths import Death, death_at
from integration.users.conftest import GREETING, permit
from support.eventually import eventually
from support.replicas import call
from support.user_manager import ask, contract

from reside.alpha.granting.control_blocks import opened
from reside.model.entities import Decision
from reside.model.errors import Conflict, InvalidInput, LoadRefused, NotAllowed
from reside.model.permissions import Grant, PermissionRef
from reside.users.contract import READ_USERS, USER_MANAGER_CONTRACT, USERS, Permission, PermissionSet, User
from reside.users.manager import open_manager

if TYPE_CHECKING:
    from support.alpha_cluster import AlphaCluster, Client
    from support.user_manager import Loaded

    from reside.replica import Context

MADE = Decision(by="co_z1", at=1)
pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("manager")]


async def permission(cluster: AlphaCluster, name: str, **params: Any) -> dict[str, Any]:
    """Return a permission of the greeter as bodies name it."""
    number = (await cluster.replica("greeter")).id
    return {"replica": number, "contract": GREETING, "permission": name, "params": params}


async def expected(cluster: AlphaCluster, client: Client) -> dict[str, dict[str, Any]]:
    """Return what the greeter is expected to grant to a client: name → params; with all that was written before."""
    await cluster.alpha.node.catch_up()
    found = await cluster.permissions("greeter")
    return {p.ref.name: p.expected.params for p in found if _is_of(client, p.ref) and p.expected.granted}


def _is_of(client: Client, ref: PermissionRef) -> bool:
    return ref.account == client.node.account_id


async def is_expected(cluster: AlphaCluster, client: Client, grants: dict[str, dict[str, Any]]) -> None:
    await eventually(f"{grants}", partial(expected, cluster, client), lambda found: found == grants)


async def until_greeted(greeter: Context, client: Client) -> Any:
    """Call the greeter until it no longer refuses, and return its response."""

    async def look() -> Any:
        try:
            return {"params": await call(greeter, client.credentials, "greet", {}, contract=GREETING)}
        except NotAllowed:
            return None

    return (await eventually("a greeting", look))["params"]


async def user(cluster: AlphaCluster, manager: Context, admin: Client, name: str) -> Client:
    """Return a new client that is a user with this name."""
    client = await cluster.client(name)
    await ask(manager, admin, "add-user", account=client.node.account_id, name=name)
    return client


async def test_a_user_is_refused_before_it_gets_a_set_by_name_and_after_it_has_lost_it(
    cluster: AlphaCluster, manager: Context, greeter: Context, admin: Client
) -> None:
    ada = await user(cluster, manager, admin, "ada")
    with pytest.raises(NotAllowed):
        await call(greeter, ada.credentials, "greet", {}, contract=GREETING)
    await ask(manager, admin, "define-set", name="on-call", permissions=[await permission(cluster, "greet", times=3)])
    await ask(manager, admin, "assign-set", user="ada", set="on-call", reason="this week")
    assert await until_greeted(greeter, ada) == {"times": 3}

    async def holdings() -> list[tuple[Any, ...]]:
        has = (await ask(manager, admin, "who-has", user="ada"))["holdings"]
        return [(h["user"], h["permission"]["permission"], h["sources"], h["inForce"]) for h in has]

    wanted = [("ada", "greet", ["set on-call"], True)]
    await eventually("what ada has", holdings, lambda seen: seen == wanted)
    left = await ask(manager, admin, "unassign-set", user="ada", set="on-call")
    assert left["sets"] == {}
    await greeter.node.catch_up()
    with pytest.raises(NotAllowed):
        await call(greeter, ada.credentials, "greet", {}, contract=GREETING)


async def test_a_set_that_changes_changes_what_all_its_users_have(
    cluster: AlphaCluster, manager: Context, admin: Client
) -> None:
    two = [await user(cluster, manager, admin, name) for name in ("bob", "eve")]
    greet, wave = await permission(cluster, "greet"), await permission(cluster, "wave")
    await ask(manager, admin, "define-set", name="team", permissions=[greet])
    for name in ("bob", "eve"):
        await ask(manager, admin, "assign-set", user=name, set="team")
    for permissions, names in (([greet, wave], ("greet", "wave")), ([wave], ("wave",)), ([], ())):
        await ask(manager, admin, "define-set", name="team", permissions=permissions)
        for client in two:
            assert sorted(await expected(cluster, client)) == sorted(names), "when the call returns"
    with pytest.raises(Conflict, match="the set team is assigned to bob, eve: unassign it first"):
        await ask(manager, admin, "delete-set", name="team")


async def test_a_removed_user_loses_everything_and_its_name_is_free(
    cluster: AlphaCluster, manager: Context, admin: Client
) -> None:
    kim = await user(cluster, manager, admin, "kim")
    await ask(manager, admin, "define-set", name="leavers", permissions=[await permission(cluster, "greet")])
    await ask(manager, admin, "assign-set", user="kim", set="leavers")
    await ask(manager, admin, "grant-permission", user="kim", permission=await permission(cluster, "room", room="a"))
    await is_expected(cluster, kim, {"greet": {}, "room": {"room": "a"}})
    with pytest.raises(Conflict, match="the name kim belongs to"):
        await ask(manager, admin, "add-user", account=admin.node.account_id, name="kim")
    await ask(manager, admin, "rename-user", user="kim", name="kim.lee")
    await ask(manager, admin, "remove-user", user="kim.lee")
    assert await expected(cluster, kim) == {}
    await user(cluster, manager, admin, "kim.lee")
    names = [found["name"] for found in (await ask(manager, admin, "list-users"))["users"]]
    assert "kim.lee" in names
    assert "kim" not in names


async def test_one_permission_is_given_and_taken_apart_from_sets_and_its_params_apply(
    cluster: AlphaCluster, manager: Context, admin: Client
) -> None:
    max_ = await user(cluster, manager, admin, "max")
    three, four = await permission(cluster, "greet", times=3), await permission(cluster, "greet", times=4)
    await ask(manager, admin, "define-set", name="greeters", permissions=[three])
    await ask(manager, admin, "assign-set", user="max", set="greeters")
    await ask(manager, admin, "grant-permission", user=max_.node.account_id, permission=four, reason="a test")
    assert await expected(cluster, max_) == {"greet": {"times": 4}}
    has = (await ask(manager, admin, "who-has", replica=four["replica"], permission="greet"))["holdings"]
    assert [h["sources"] for h in has if h["user"] == "max"] == [["granted", "set greeters"]]
    await ask(manager, admin, "revoke-permission", user="max", permission=four)
    assert await expected(cluster, max_) == {"greet": {"times": 3}}
    with pytest.raises(Conflict, match="user max has no greet apart from sets"):
        await ask(manager, admin, "revoke-permission", user="max", permission=four)


async def test_what_is_given_is_checked_as_alpha_checks_it(
    cluster: AlphaCluster, manager: Context, admin: Client
) -> None:
    await user(cluster, manager, admin, "tim")
    bad = await permission(cluster, "greet", times=10)
    for body, error, text in (
        (bad, LoadRefused, "10 is greater than the maximum of 9"),
        (bad | {"permission": "grate"}, LoadRefused, "has no permission 'grate'"),
        (bad | {"permission": "room"}, LoadRefused, "needs an instance"),
        (bad | {"contract": f"{GREETING}x"}, InvalidInput, "greeter does not implement"),
        (bad | {"replica": 99}, InvalidInput, "replica 99 does not exist"),
    ):
        with pytest.raises(error, match=text):
            await ask(manager, admin, "grant-permission", user="tim", permission=body)
        with pytest.raises(error, match=text):
            await ask(manager, admin, "define-set", name="bad", permissions=[body])
    replica = (await cluster.replica("greeter")).account
    for account, text in ((replica, "is the account of a replica"), ("co_z" + "1" * 20, "can't be found")):
        with pytest.raises(InvalidInput, match=text):
            await ask(manager, admin, "add-user", account=account, name="robot")
    for name in ("co_zAda", "a b", ""):
        with pytest.raises(InvalidInput, match="name"):
            await ask(manager, admin, "add-user", account=admin.node.account_id, name=name)


async def test_strangers_change_and_read_nothing(cluster: AlphaCluster, manager: Context, admin: Client) -> None:
    stranger = await cluster.client("stranger")
    own = stranger.node.account_id
    greet = await permission(cluster, "greet")
    bodies: dict[str, dict[str, Any]] = {
        "add-user": {"account": own, "name": "mallory"},
        "rename-user": {"user": "ada", "name": "mallory"},
        "remove-user": {"user": "ada"},
        "list-users": {},
        "define-set": {"name": "on-call", "permissions": [greet]},
        "delete-set": {"name": "on-call"},
        "list-sets": {},
        "assign-set": {"user": own, "set": "on-call"},
        "unassign-set": {"user": "ada", "set": "on-call"},
        "grant-permission": {"user": own, "permission": greet},
        "revoke-permission": {"user": "ada", "permission": greet},
        "who-has": {},
    }
    assert bodies.keys() == contract().methods.keys()
    for method, body in bodies.items():
        with pytest.raises(NotAllowed, match=f"{method} needs the permission user:"):
            await ask(manager, stranger, method, **body)


async def test_a_reader_reads_the_data_and_changes_nothing(
    cluster: AlphaCluster, manager: Context, admin: Client
) -> None:
    """Also while the user manager does not run: the names that `reside permission list` shows come from here."""
    reader = await cluster.client("reader")
    await user(cluster, manager, admin, "zoe")
    users = await reader.node.load_map(manager.data[USER_MANAGER_CONTRACT][USERS])
    assert users.as_dict() == {}
    await permit(cluster, admin, reader, READ_USERS)
    seen = await eventually("the users", users.as_dict)
    assert "zoe" in {found["name"] for found in seen.values()}
    ref = PermissionRef(reader.node.account_id, USER_MANAGER_CONTRACT, READ_USERS)
    await eventually("the permission", lambda: manager.rcb.is_granted(ref))
    assert (await ask(manager, reader, "list-users"))["users"]
    with pytest.raises(NotAllowed, match="add-user needs the permission user:manage:all"):
        await ask(manager, reader, "add-user", account=reader.node.account_id, name="mallory")


async def test_an_entry_that_another_manager_of_control_blocks_revokes_is_brought_back(
    cluster: AlphaCluster, manager: Context, admin: Client
) -> None:
    """Alpha's account acts as one; its own sync does not know the entry."""
    pat = await user(cluster, manager, admin, "pat")
    await ask(manager, admin, "grant-permission", user="pat", permission=await permission(cluster, "wave"))
    ref = PermissionRef(pat.node.account_id, GREETING, "wave")
    async with opened(cluster.alpha.node, (await cluster.replica("greeter")).control_block) as block:
        await block.set_expected(ref, Grant(granted=False))
        entry = block.find(ref)
        assert entry is not None
        assert not entry.expected.granted
    await is_expected(cluster, pat, {"wave": {}})


async def test_a_direct_grant_of_alpha_keeps_its_params_and_the_two_do_not_write_by_turns(
    cluster: AlphaCluster, manager: Context, admin: Client
) -> None:
    """The end of either source leaves what the other one gives."""
    lee = await user(cluster, manager, admin, "lee")
    direct = await permission(cluster, "greet", times=1) | {"account": lee.node.account_id}
    await admin.call("grant-permission", direct)
    ours = await permission(cluster, "greet", times=2)
    await ask(manager, admin, "grant-permission", user="lee", permission=ours)
    assert await expected(cluster, lee) == {"greet": {"times": 1}}
    await admin.call("revoke-permission", direct)
    await is_expected(cluster, lee, {"greet": {"times": 2}})
    await admin.call("grant-permission", direct)
    await is_expected(cluster, lee, {"greet": {"times": 1}})
    await ask(manager, admin, "revoke-permission", user="lee", permission=ours)
    assert await expected(cluster, lee) == {"greet": {"times": 1}}
    await admin.call("revoke-permission", direct)
    assert await expected(cluster, lee) == {}
    block = await cluster.alpha.node.load_map((await cluster.replica("greeter")).control_block)
    listing = await cluster.alpha.node.load_map(block["permissions"])
    entry = await cluster.alpha.node.load_map(listing[f"{lee.node.account_id}:{GREETING}:greet"])
    written = [(edit.value["granted"], edit.value["params"].get("times")) for edit in entry.history("expected")]
    assert written == [(True, 1), (False, None), (True, 2), (True, 1), (False, None)]


async def change(context: Context, account: str, user: User | None) -> None:
    """Do what a method does: store a user or remove it, and make its pass."""
    manager = await open_manager(context)
    if user is None:
        manager.data.users.delete(account)
    else:
        manager.data.users.set(account, user.document())
    await manager.sync([account])


async def state(cluster: AlphaCluster, context: Context, account: str) -> tuple[bool, list[str], bool]:
    """Return whether the user is stored, what it should have, and whether something is recorded for it."""
    data = (await open_manager(context)).data
    entries = [p for p in await cluster.permissions("greeter") if p.ref.account == account and p.expected.granted]
    return account in data.users, sorted(p.ref.name for p in entries), bool(data.written_for(account))


async def test_a_pass_that_dies_at_any_write_is_completed_by_the_next_start(
    cluster: AlphaCluster, loaded: Loaded, manager: Context
) -> None:
    """First users get a set, then they are removed; the points of death move on until nobody dies.

    The user manager of the other tests does not follow the entries of these users, so it makes no pass for them.
    """
    greeter = (await cluster.replica("greeter")).id
    permissions = tuple(Permission(replica=greeter, contract=GREETING, permission=name) for name in ("greet", "wave"))
    two = PermissionSet(name="two", permissions=permissions, decided=MADE)
    (await open_manager(manager)).data.sets.set(two.name, two.document())
    for keeps in (True, False):
        for point in count(1):
            account = (await cluster.client()).node.account_id
            user = User(account=account, name=f"u{point}", added=MADE, sets={two.name: MADE})
            if not keeps:
                await change(manager, account, user)
            died = await _dies(loaded, point, account, user if keeps else None)
            async with loaded.user_manager() as context:
                is_stored, _, _ = await eventually(
                    f"the end of a pass that died at write {point}",
                    partial(state, cluster, context, account),
                    lambda found: found[1:] == ((["greet", "wave"], True) if found[0] else ([], False)),
                    within=90,
                )
            assert is_stored is keeps or point == 1, "the first write stores the user, or removes it"
            if not died:
                assert point > 4
                break


async def _dies(loaded: Loaded, point: int, account: str, user: User | None) -> bool:
    """Change a user in a process that dies at its `point`-th write; return whether it got so far."""
    async with loaded.user_manager(main=False) as context:
        with death_at(context, point) as dead:
            with suppress(Death):
                await change(context, account, user)
            return dead.is_set()
