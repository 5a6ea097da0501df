"""The users of etcd: each may touch its own locks only, and strangers none."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import pytest
from support.etcd import etcd_server

from reside.locks import ROOT, EtcdUnavailable, EtcdUser, LockLost, LockService, LockTimeout, UserRefused, Users
from reside.locks.etcd import Etcd, encode

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from support.etcd import EtcdServer

    from reside.locks import UserSource

pytestmark = pytest.mark.anyio

ADMIN = EtcdUser(ROOT, "root's password")
ADA, BOB = EtcdUser("ada", "ada's password"), EtcdUser("bob", "bob's password")


def source(user: EtcdUser | None) -> UserSource:
    async def find() -> EtcdUser | None:
        return user

    return find


@pytest.fixture(scope="module")
def etcd() -> Iterator[EtcdServer]:
    with etcd_server() as server:
        yield server


@pytest.fixture
async def users(etcd: EtcdServer) -> AsyncIterator[Users]:
    """Return the users of an etcd that asks for them: ada and bob."""
    client = Etcd([etcd.url], source(ADMIN))
    users = Users(client, ADMIN)
    await users.secure()
    for user in (ADA, BOB):
        await users.add(user)
    yield users
    await client.aclose()


@pytest.fixture
async def services(etcd: EtcdServer, users: Users) -> AsyncIterator[dict[str, LockService]]:
    """Return the locks of ada, as she takes them and as strangers try to."""
    who = {"ada": ADA, "bob": BOB, "nobody": None, "with a wrong password": EtcdUser("ada", "guessed"), "root": ADMIN}
    async with AsyncExitStack() as stack:
        yield {
            name: await stack.enter_async_context(LockService([etcd.url], space="ada", user=source(user), holder=name))
            for name, user in who.items()
        }


@pytest.mark.parametrize("stranger", ["bob", "nobody", "with a wrong password"])
async def test_a_lock_can_not_be_taken_read_or_released_by_others(
    services: dict[str, LockService], stranger: str
) -> None:
    others, key = services[stranger], encode("reside/ada/hers")
    with pytest.raises(EtcdUnavailable, match=r"permission denied|has none yet|refuses user ada"):
        async with others.lock("free", wait=0.5):
            pytest.fail("a stranger took a lock")
    async with services["ada"].lock("hers") as held:
        lease = str(held.lease)
        attacks: list[tuple[str, dict[str, Any]]] = [
            ("/v3/kv/range", {"key": key}),
            ("/v3/kv/put", {"key": key, "value": "", "lease": "0"}),
            ("/v3/kv/deleterange", {"key": encode("\0"), "range_end": encode("\0")}),
            ("/v3/kv/txn", {"success": [{"requestDeleteRange": {"key": key}}]}),
            ("/v3/lease/revoke", {"ID": lease}),
            ("/v3/kv/lease/revoke", {"ID": lease}),
            ("/v3/lease/timetolive", {"ID": lease, "keys": True}),
            ("/v3/auth/disable", {}),
            ("/v3/auth/user/changepw", {"name": "ada", "password": "mine"}),
            ("/v3/auth/user/grant", {"user": "bob", "role": "root"}),
            ("/v3/maintenance/snapshot", {}),
        ]
        for path, body in attacks:
            with pytest.raises(EtcdUnavailable):
                await others.etcd.gateway.post(path, body)
        with pytest.raises(EtcdUnavailable):
            await others.etcd.wait_deleted("reside/ada/hers", 0, at_most=5)
        await held.check()


async def test_root_and_its_user_take_the_same_lock(services: dict[str, LockService]) -> None:
    async with services["ada"].lock("shared"):
        with pytest.raises(LockTimeout, match="held by ada"):
            async with services["root"].lock("shared", wait=2):
                pytest.fail("both hold it")
    async with services["root"].lock("shared", wait=60):
        pass


async def test_a_stranger_who_renews_the_lease_of_a_dead_holder_does_not_keep_the_lock(
    services: dict[str, LockService],
) -> None:
    """Etcd lets anybody list leases and renew them."""
    stranger = services["nobody"].etcd
    lease = await services["ada"].etcd.grant(3)
    assert (await services["ada"].etcd.create("reside/ada/dead", "the dead one", lease)).succeeded

    async def renew() -> None:
        while True:
            assert await stranger.keep_alive(lease, timeout=5)
            await asyncio.sleep(0.5)

    renewing = asyncio.create_task(renew())
    try:
        async with services["ada"].lock("dead", wait=90) as held:
            assert held.lease != lease
            assert not renewing.done(), "the lease ended by itself"
    finally:
        renewing.cancel()
        await asyncio.gather(renewing, return_exceptions=True)


async def test_locks_are_kept_while_users_are_added_and_removed(users: Users, services: dict[str, LockService]) -> None:
    async with services["ada"].lock("kept") as held:
        for number in range(5):
            await users.add(EtcdUser(f"user{number}", "x"))
            await held.check()
            await users.remove(f"user{number}")
            await held.check()
    assert await users.names() == {"ada", "bob"}


async def test_a_removed_user_loses_its_locks_and_can_not_log_in(etcd: EtcdServer, users: Users) -> None:
    eve = EtcdUser("eve", "eve's password")
    await users.add(eve)
    async with LockService([etcd.url], space="eve", user=source(eve)) as hers:
        with pytest.raises(LockLost):  # noqa: PT012 - the block raises when the lock is lost
            async with hers.lock("last", ttl=6):
                await users.remove("eve")
                await asyncio.Event().wait()
        with pytest.raises(UserRefused, match="etcd refuses user eve"):
            await Etcd([etcd.url]).gateway.log_in(eve)


async def test_a_restarted_etcd_asks_again_and_the_holder_keeps_its_lock(
    etcd: EtcdServer, services: dict[str, LockService]
) -> None:
    """Etcd keeps tokens in memory, so all of them are gone."""
    async with services["ada"].lock("over a restart") as held:
        etcd.kill()
        etcd.start()
        await held.check()


async def test_what_strangers_made_before_etcd_asked_for_users_is_gone() -> None:
    with etcd_server() as fresh:
        stranger = Etcd([fresh.url])
        post = stranger.gateway.post
        await post("/v3/auth/user/add", {"name": "eve", "password": "x"})
        await post("/v3/auth/role/add", {"name": "root"})
        await post("/v3/auth/user/grant", {"user": "eve", "role": "root"})
        lease = await stranger.grant(600)
        await stranger.create("reside/alpha/leader", "eve", lease)
        async with LockService([fresh.url], user=source(ADMIN), holder="alpha") as locks:
            users = Users(locks.etcd, ADMIN)
            assert await users.secure()
            async with locks.lock("alpha/leader", wait=5):
                assert not await users.secure(), "what is done is not done again"
            with pytest.raises(UserRefused):
                await stranger.gateway.log_in(EtcdUser("eve", "x"))
        await stranger.aclose()


@pytest.mark.parametrize("point", range(1, 8))
async def test_an_interrupted_start_of_authentication_is_continued(point: int) -> None:
    """The process dies before its n-th request."""
    with etcd_server() as fresh:
        dying = Etcd([fresh.url], source(ADMIN))
        await dying.create("reside/old", "before", await dying.grant(600))
        send, count = dying.gateway._send, 0

        async def counted(*args: Any) -> Any:
            nonlocal count
            count += 1
            if count >= point:
                raise RuntimeError("died")
            return await send(*args)

        dying.gateway._send = counted  # type: ignore[method-assign]
        with pytest.raises(RuntimeError, match="died"):
            await Users(dying, ADMIN).secure()
        successor = Etcd([fresh.url], source(ADMIN))
        users = Users(successor, ADMIN)
        assert await users.secure()
        assert not await users.secure()
        assert (await successor.confirm("reside/old", 1, 1)).entry is None, "what was made before is gone"
        with pytest.raises(EtcdUnavailable, match="has none yet"):
            await Etcd([fresh.url]).create("reside/x", "", 0)


async def test_a_client_that_was_there_before_logs_in_when_etcd_begins_to_ask() -> None:
    """A cluster of an earlier release gets users while its replicas run."""
    with etcd_server() as fresh:
        known: list[EtcdUser] = []

        async def find() -> EtcdUser | None:
            return known[0] if known else None

        async with LockService([fresh.url], space="ada", user=find) as early:
            async with early.lock("open"):
                pass
            admin = Etcd([fresh.url], source(ADMIN))
            users = Users(admin, ADMIN)
            await users.secure()
            with pytest.raises(EtcdUnavailable, match="has none yet"):
                async with early.lock("asked", wait=0.3):
                    pytest.fail("without a user")
            asked = asyncio.Event()

            async def take() -> None:
                asked.set()
                async with early.lock("asked", wait=30) as held:
                    await held.check()

            taking = asyncio.create_task(take())
            await asked.wait()
            await users.add(ADA)
            known.append(ADA)
            await asyncio.wait_for(taking, 20)
            await admin.aclose()
