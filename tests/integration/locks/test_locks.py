"""Locks and leadership with a real etcd: exclusion, waiting, fencing, loss, and crashed holders."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from support.etcd import EtcdServer, etcd_server

from reside.locks import EtcdUnavailable, LockLost, LockService, LockTimeout

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


async def _hold_frozen(service: LockService, server: EtcdServer) -> None:
    async with service.lock("silent", ttl=4):
        server.freeze()
        await asyncio.Event().wait()
