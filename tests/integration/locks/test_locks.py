"""Locks and leadership with a real etcd: exclusion, waiting, fencing, loss, and crashed holders."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from support.etcd import EtcdServer, etcd_server

from reside.locks import EtcdUnavailable, Held, LockLost, LockService, LockTimeout
from reside.locks.etcd import Etcd

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def etcd() -> Iterator[EtcdServer]:
    with etcd_server() as server:
        yield server


@pytest.fixture
async def locks(etcd: EtcdServer) -> AsyncIterator[LockService]:
    async with LockService([etcd.url], holder="one") as service:
        yield service


@pytest.fixture
async def others(etcd: EtcdServer) -> AsyncIterator[LockService]:
    """Yield the locks of another process."""
    async with LockService([etcd.url], holder="two") as service:
        yield service


async def test_a_lock_excludes_others_and_names_its_holder(locks: LockService, others: LockService) -> None:
    async with locks.lock("excludes"):
        with pytest.raises(LockTimeout, match="reside/excludes is held by one") as caught:
            async with others.lock("excludes", wait=0.3):
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
    async with locks.lock("left") as left, others.lock("right", wait=5) as right:
        assert left.revision != right.revision


async def test_nothing_stays_in_etcd_after_use(locks: LockService, etcd: EtcdServer) -> None:
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
    client = Etcd([etcd.url])
    keys = await client.gateway.post("/v3/kv/range", {"key": "AA==", "range_end": "AA=="})
    leases = await client.gateway.post("/v3/lease/leases", {})
    await client.aclose()
    assert keys.get("kvs", []) == []
    assert str(held.lease) not in [lease["ID"] for lease in leases.get("leases", [])]


async def test_an_error_in_the_block_releases_the_lock_and_reaches_the_caller(
    locks: LockService, others: LockService
) -> None:
    with pytest.raises(KeyError, match="mine"):
        async with locks.lock("erring"):
            raise KeyError("mine")
    async with others.lock("erring", wait=1):
        pass


async def test_a_check_fails_with_the_reason_once_the_lease_has_ended(locks: LockService, etcd: EtcdServer) -> None:
    """The lease ended without the holder's knowledge, as after a long freeze of the process."""
    async with locks.lock("revoked") as held:
        await _revoke(etcd, held)
        with pytest.raises(LockLost, match="its lease expired"):
            await held.check()
        assert held.lost.is_set()


async def test_a_check_fails_when_another_holder_has_the_lock(
    locks: LockService, others: LockService, etcd: EtcdServer
) -> None:
    """A stalled holder is fenced: it never confirms its old revision while the new one is held."""
    async with locks.lock("stolen") as held:
        await _revoke(etcd, held)
        async with others.lock("stolen") as next_held:
            assert next_held.revision > held.revision
            with pytest.raises(LockLost, match="another holder has it"):
                await held.check()


async def test_a_holder_whose_lease_ended_is_cancelled_and_its_block_ends_with_lock_lost(
    locks: LockService, etcd: EtcdServer
) -> None:
    async def hold() -> None:
        async with locks.lock("told", ttl=6) as held:
            await _revoke(etcd, held)
            await held.lost.wait()
            await asyncio.Event().wait()

    with pytest.raises(LockLost, match="its lease expired"):
        await hold()
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_a_holder_loses_its_lock_when_etcd_is_silent_for_half_the_time_to_live(others: LockService) -> None:
    """The connection stays open and nothing responds: the holder stops while its lease still protects it."""
    with etcd_server() as frozen:
        async with LockService([frozen.url]) as locks:
            with pytest.raises(LockLost, match="could not be renewed"):
                await _hold_frozen(locks, frozen)
            frozen.thaw()


async def test_a_lock_is_kept_alive_beyond_its_time_to_live(locks: LockService, others: LockService) -> None:
    async with locks.lock("kept", ttl=8) as held:
        with pytest.raises(LockTimeout):
            async with others.lock("kept", wait=9):
                pytest.fail("the lock ended though it was kept alive")
        await held.check()


async def test_a_lock_survives_a_restart_of_etcd() -> None:
    with etcd_server() as server:
        async with LockService([server.url]) as locks, locks.lock("restarted") as held:
            server.kill()
            server.start()
            await held.check()


async def test_acquiring_a_lock_without_etcd_is_an_unavailable_error() -> None:
    with etcd_server() as server:
        server.kill()
        async with LockService([server.url]) as locks:
            with pytest.raises(EtcdUnavailable, match="does not respond"):
                async with locks.lock("nowhere", wait=0.5):
                    pytest.fail("a lock without etcd")


async def test_a_dead_member_is_skipped(etcd: EtcdServer) -> None:
    async with LockService(["http://127.0.0.1:9", etcd.url]) as locks, locks.lock("second-member") as held:
        await held.check()


async def test_the_lock_of_a_killed_process_ends_with_its_lease(locks: LockService, etcd: EtcdServer) -> None:
    program = (
        "import asyncio, sys\n"
        "from reside.locks import LockService\n"
        "async def main():\n"
        "    async with LockService([sys.argv[1]]) as locks, locks.lock('killed', ttl=2):\n"
        "        print('held', flush=True)\n"
        "        await asyncio.Event().wait()\n"
        "asyncio.run(main())\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program, etcd.url], stdout=subprocess.PIPE)  # noqa: ASYNC220
    assert process.stdout is not None
    assert await asyncio.to_thread(process.stdout.readline) == b"held\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    async with locks.lock("killed", wait=30) as held:
        await held.check()


async def test_one_leads_at_a_time_and_another_takes_over_when_the_leadership_is_lost(
    locks: LockService, others: LockService, etcd: EtcdServer
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
        await _revoke(etcd, held)
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


async def test_the_loss_of_another_lock_does_not_count_as_lost_leadership(locks: LockService, etcd: EtcdServer) -> None:
    async def work(_: Held) -> None:
        async with locks.lock("inner") as inner:
            await _revoke(etcd, inner)
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


async def _revoke(etcd: EtcdServer, held: Held) -> None:
    client = Etcd([etcd.url])
    await client.revoke(held.lease)
    await client.aclose()


async def _hold_frozen(service: LockService, server: EtcdServer) -> None:
    async with service.lock("silent", ttl=4):
        server.freeze()
        await asyncio.Event().wait()
