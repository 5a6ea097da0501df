"""The contract of locks and leadership, with a real etcd and with the one in memory of `reside.testing`."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from support.etcd import etcd_server

from reside.locks import Held, LockLost, LockService, LockTimeout
from reside.locks.etcd import Etcd
from reside.testing import MemoryEtcd

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    import httpx2

pytestmark = pytest.mark.anyio


@dataclass(frozen=True)
class Store:
    """Where the locks are: the address of etcd, and the transport of the one in memory."""

    url: str
    transport: httpx2.AsyncBaseTransport | None = None

    def locks(self, holder: str) -> LockService:
        """Return the lock service of a process."""
        return LockService([self.url], holder=holder, transport=self.transport)

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Etcd]:
        """Yield a client that looks at the store, and changes it as etcd itself would."""
        etcd = Etcd([self.url], transport=self.transport)
        try:
            yield etcd
        finally:
            await etcd.aclose()


@pytest.fixture(scope="module", params=["etcd", "memory"])
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    if request.param == "memory":
        yield Store("http://etcd", MemoryEtcd())
    else:
        with etcd_server() as server:
            yield Store(server.url)


@pytest.fixture
async def locks(store: Store) -> AsyncIterator[LockService]:
    async with store.locks("one") as service:
        yield service


@pytest.fixture
async def others(store: Store) -> AsyncIterator[LockService]:
    """Yield the locks of another process."""
    async with store.locks("two") as service:
        yield service


async def test_a_lock_excludes_others_and_names_its_holder(locks: LockService, others: LockService) -> None:
    async with locks.lock("excludes"):
        with pytest.raises(LockTimeout, match="reside/excludes is held by one") as caught:
            async with others.lock("excludes", wait=2):
                pytest.fail("two hold one lock")
    assert caught.value.holder == "one"


async def test_a_waiter_gets_a_released_lock_with_a_greater_revision(locks: LockService, others: LockService) -> None:
    waiting: asyncio.Task[int]

    async def take() -> int:
        async with others.lock("waited-for") as held:
            return held.revision

    async with locks.lock("waited-for") as first:
        waiting = asyncio.create_task(take())
        await first.check()
        assert not waiting.done()
    assert await waiting > first.revision


async def test_contenders_hold_a_lock_one_at_a_time_with_growing_revisions(
    locks: LockService, others: LockService
) -> None:
    inside, revisions = 0, []

    async def contend(service: LockService) -> None:
        nonlocal inside
        for _ in range(3):
            async with service.lock("contended") as held:
                inside += 1
                assert inside == 1
                await held.check()
                revisions.append(held.revision)
                inside -= 1

    async with asyncio.TaskGroup() as contenders:
        for service in (locks, others) * 4:
            contenders.create_task(contend(service))
    assert len(revisions) == 24
    assert revisions == sorted(revisions)


async def test_different_keys_do_not_exclude_each_other(locks: LockService, others: LockService) -> None:
    async with locks.lock("left") as left, others.lock("right", wait=60) as right:
        assert left.revision != right.revision


async def test_nothing_stays_after_use(locks: LockService, store: Store) -> None:
    """Clients that released, timed out or were cancelled leave no key, and a holder no lease."""
    async with locks.lock("tidy") as held:
        waiting = asyncio.create_task(_take(locks, "tidy"))
        await held.check()
        waiting.cancel()
        with pytest.raises(LockTimeout):
            async with locks.lock("tidy", wait=0.1):
                pytest.fail("two hold one lock")
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await locks.aclose()
    async with store.client() as client:
        keys = await client.gateway.post("/v3/kv/range", {"key": "AA==", "range_end": "AA=="})
        leases = await client.gateway.post("/v3/lease/leases", {})
    assert keys.get("kvs", []) == []
    assert str(held.lease) not in [lease["ID"] for lease in leases.get("leases", [])]


async def test_an_error_in_the_block_releases_the_lock_and_reaches_the_caller(
    locks: LockService, others: LockService
) -> None:
    with pytest.raises(KeyError, match="mine"):
        async with locks.lock("erring"):
            raise KeyError("mine")
    async with others.lock("erring", wait=60):
        pass


async def test_a_check_fails_with_the_reason_once_the_lease_has_ended(locks: LockService, store: Store) -> None:
    """The lease ended without the holder's knowledge, as after a long freeze of the process."""
    async with locks.lock("revoked") as held:
        await _revoke(store, held)
        with pytest.raises(LockLost, match="its lease expired"):
            await held.check()
        assert held.lost.is_set()


async def test_a_check_fails_when_another_holder_has_the_lock(
    locks: LockService, others: LockService, store: Store
) -> None:
    """A stalled holder is fenced: it never confirms its old revision while the new one is held."""
    async with locks.lock("stolen") as held:
        await _revoke(store, held)
        async with others.lock("stolen") as next_held:
            assert next_held.revision > held.revision
            with pytest.raises(LockLost, match="another holder has it"):
                await held.check()


async def test_a_holder_whose_lease_ended_is_cancelled_and_its_block_ends_with_lock_lost(
    locks: LockService, store: Store
) -> None:
    async def hold() -> None:
        async with locks.lock("told", ttl=12) as held:
            await _revoke(store, held)
            await held.lost.wait()
            await asyncio.Event().wait()

    with pytest.raises(LockLost, match="its lease expired"):
        await hold()
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_one_leads_at_a_time_and_another_takes_over_when_the_leadership_is_lost(
    locks: LockService, others: LockService, store: Store
) -> None:
    terms: asyncio.Queue[tuple[str, Held]] = asyncio.Queue()

    def work(name: str):  # noqa: ANN202 - a coroutine function
        async def lead(held: Held) -> None:
            terms.put_nowait((name, held))
            await asyncio.Event().wait()

        return lead

    candidates = [
        asyncio.create_task(locks.leader("lead", ttl=6).run(work("one"))),
        asyncio.create_task(others.leader("lead", ttl=6).run(work("two"))),
    ]
    async with asyncio.timeout(60):
        _, held = await terms.get()
        await _revoke(store, held)
        second, next_held = await terms.get()
        assert next_held.revision > held.revision
        candidates[("one", "two").index(second)].cancel()
        third, _ = await terms.get()
        assert third != second
    for candidate in candidates:
        candidate.cancel()
    await asyncio.gather(*candidates, return_exceptions=True)


async def test_a_leaders_own_error_and_result_reach_the_caller(locks: LockService) -> None:
    async def fail(_: Held) -> None:
        raise ValueError("of the work")

    async def finish(held: Held) -> int:
        return held.revision

    with pytest.raises(ValueError, match="of the work"):
        await locks.leader("own-error").run(fail)
    assert await locks.leader("own-error").run(finish) > 0


async def test_the_loss_of_another_lock_does_not_count_as_lost_leadership(locks: LockService, store: Store) -> None:
    async def work(_: Held) -> None:
        async with locks.lock("inner") as inner:
            await _revoke(store, inner)
            await inner.check()

    with pytest.raises(LockLost, match="reside/inner"):
        await locks.leader("outer").run(work)


async def test_a_term_can_be_a_block(locks: LockService, others: LockService) -> None:
    async with locks.leader("term") as held:
        assert held.key == "reside/leader/term"
        with pytest.raises(LockTimeout):
            async with others.lock("leader/term", wait=0.2):
                pytest.fail("two leaders")


async def _take(service: LockService, key: str) -> None:
    async with service.lock(key):
        pass


async def _revoke(store: Store, held: Held) -> None:
    async with store.client() as client:
        await client.revoke(held.lease)


async def test_the_lock_of_a_process_that_does_not_renew_its_lease_ends_with_it(
    store: Store, locks: LockService
) -> None:
    async with store.client() as killed:
        lease = await killed.grant(2)
        assert (await killed.create("reside/not-renewed", "killed", lease)).succeeded
    async with locks.lock("not-renewed", wait=60) as held:
        await held.check()


async def test_a_renewed_lease_does_not_expire(store: Store) -> None:
    async with store.client() as client:
        lease = await client.grant(30)
        assert (await client.create("reside/renewed", "one", lease)).succeeded
        assert await client.keep_alive(lease, timeout=5)
        assert await client.granted_ttl(lease) == 30
        await client.revoke(lease)
        assert not await client.keep_alive(lease, timeout=5)
        assert await client.granted_ttl(lease) == 0


async def test_a_holder_writes_its_key_again_and_only_an_unchanged_key_is_deleted(store: Store) -> None:
    """So waiters see a holder that lives, and delete the key of one that does not."""
    async with store.client() as client:
        lease = await client.grant(30)
        created = (await client.create("reside/touched", "one", lease)).entry
        assert created is not None
        touched = await client.touch("reside/touched", "one", created.create_revision, lease)
        assert touched.succeeded
        assert touched.entry is not None
        assert touched.entry.create_revision == created.create_revision
        assert touched.entry.mod_revision > created.mod_revision
        await client.delete_unchanged("reside/touched", created.mod_revision)
        assert (await client.confirm("reside/touched", created.create_revision, lease)).succeeded
        await client.delete_unchanged("reside/touched", touched.entry.mod_revision)
        assert (await client.confirm("reside/touched", created.create_revision, lease)).entry is None
        assert await client.wait_deleted("reside/touched", touched.entry.mod_revision, at_most=5)
        assert not await client.wait_deleted("reside/touched", touched.entry.mod_revision + 1, at_most=0.1)
        await client.revoke(lease)
