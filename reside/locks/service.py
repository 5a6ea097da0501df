"""The lock service: take locks, wait for them, release them.

A waiter does not rely on the lease alone, because etcd lets anybody renew any lease. It deletes the key of a lock that
its holder has not written again for longer than the time to live. The holder has given up by then: it counts its time
from before its last write, and the waiter from after it has seen this write.
"""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Self

import structlog

from reside.locks.attempts import Attempts
from reside.locks.errors import EtcdUnavailable, LockTimeout
from reside.locks.etcd import Etcd
from reside.locks.held import Held
from reside.locks.leadership import Leadership
from reside.locks.scope import kept_alive

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from types import TracebackType

    import httpx2

    from reside.locks.etcd import Outcome
    from reside.locks.gateway import UserSource

_log = structlog.get_logger(__name__)

PREFIX = "reside/"
LEADER_PREFIX = "leader/"
DEFAULT_TTL_S = 30
DEFAULT_WAIT_S = 45.0
"""Longer than the time to live, so that the lock of a crashed holder expires in the meantime."""


class LockService:
    """Locks in one etcd.

    Args:
        hosts: addresses of etcd's members, e.g. `["http://etcd:2379"]`.
        space: prefix of the keys, after `reside/`; a user of etcd may touch the keys in the space of its name.
        user: finds the user to log in as, once etcd asks for one; None: there is none.
        holder: name of this process in the errors of others; None: host name and process id.
        transport: HTTP transport; None: the network.

    Attributes:
        etcd: the client that the locks use.
    """

    def __init__(
        self,
        hosts: Sequence[str],
        *,
        space: str = "",
        user: UserSource | None = None,
        holder: str | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self.etcd = Etcd(hosts, user, transport)
        self._prefix = f"{PREFIX}{space}/" if space else PREFIX
        self._holder = holder if holder is not None else f"{socket.gethostname()}/{os.getpid()}"
        self._releases: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Wait for locks that are being released, then close all connections."""
        await asyncio.gather(*self._releases)
        await self.etcd.aclose()

    @asynccontextmanager
    async def lock(
        self, key: str, *, ttl: int = DEFAULT_TTL_S, wait: float | None = DEFAULT_WAIT_S
    ) -> AsyncIterator[Held]:
        """Hold the lock of `key` while the block runs; cancel the block if the lock is lost.

        Args:
            key: name of the lock; the key in etcd is `reside/<space>/<key>`.
            ttl: seconds after which the lock of a crashed holder expires.
            wait: seconds to wait for the lock; None: without a timeout.

        Raises:
            LockTimeout: other holders held it all the time.
            EtcdUnavailable: etcd was unavailable until the timeout.
            LockLost: the lock was lost while the block ran.
        """
        full = self._prefix + key
        held = await self._acquire(full, ttl, wait)
        try:
            async with kept_alive(held):
                yield held
        finally:
            await self._release(held.lease, full)

    def leader(self, name: str, *, ttl: int = DEFAULT_TTL_S) -> Leadership:
        """Return the leadership with this name, whose key is `reside/<space>/leader/<name>`."""
        return Leadership(name, lambda: self.lock(f"{LEADER_PREFIX}{name}", ttl=ttl, wait=None))

    async def _acquire(self, key: str, ttl: int, wait: float | None) -> Held:
        attempts = Attempts()
        try:
            async with asyncio.timeout(wait):
                while True:
                    if (taken := await self._attempt(key, ttl, attempts)) is not None:
                        return taken
        except TimeoutError:
            if attempts.unavailable is not None:
                raise attempts.unavailable from None
            raise LockTimeout(key, attempts.holder) from None

    async def _attempt(self, key: str, ttl: int, attempts: Attempts) -> Held | None:
        """Try once to take the lock; if that fails, wait until another attempt may succeed."""
        asked_at = asyncio.get_running_loop().time()
        try:
            lease = await self.etcd.grant(ttl)
            taken = False
            try:
                outcome = await self.etcd.create(key, self._holder, lease)
                # The key has our lease if the response to an earlier attempt of the same request was lost.
                taken = outcome.succeeded or (outcome.entry is not None and outcome.entry.lease == lease)
            finally:
                if not taken:
                    await self._release(lease, key)
            if taken and outcome.entry is not None:
                revision = outcome.entry.create_revision
                return Held(self.etcd, key, revision, holder=self._holder, lease=lease, ttl=ttl, renewed_at=asked_at)
            if await self._wait_for_change(key, outcome, attempts):
                attempts.retries.succeeded()
                return None
        except EtcdUnavailable as error:
            attempts.unavailable = error
        await asyncio.sleep(attempts.retries.failed())
        return None

    async def _wait_for_change(self, key: str, outcome: Outcome, attempts: Attempts) -> bool:
        """Wait until the lock of another holder is released, or delete it if it is abandoned."""
        entry = outcome.entry
        if entry is not None and attempts.is_abandoned(entry):
            _log.warning("lock was not renewed; it is deleted", key=key, holder=entry.value)
            await self.etcd.delete_unchanged(key, entry.mod_revision)
            return True
        if entry is not None and attempts.is_new(entry):
            attempts.note(entry, await self.etcd.granted_ttl(entry.lease))
        return await self.etcd.wait_deleted(key, outcome.revision, at_most=attempts.recheck_s())

    async def _release(self, lease: int, key: str) -> None:
        """Revoke the lease in a separate task, so that the lock of a cancelled holder is released immediately."""
        task = asyncio.create_task(self._revoke(lease, key), name=f"release {key}")
        self._releases.add(task)
        task.add_done_callback(self._releases.discard)
        await asyncio.shield(task)

    async def _revoke(self, lease: int, key: str) -> None:
        try:
            await self.etcd.revoke(lease)
        except EtcdUnavailable as error:  # the lease expires anyway; until then others have to wait
            _log.warning("lock not released; it ends when its lease expires", key=key, error=str(error))
