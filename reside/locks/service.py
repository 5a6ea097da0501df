"""The lock service: takes locks, waits for them, gives them back."""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Self

import structlog

from reside.common.backoff import Backoff, Retries
from reside.locks.errors import EtcdUnavailable, LockTimeout
from reside.locks.etcd import Etcd
from reside.locks.held import Held
from reside.locks.leadership import Leadership
from reside.locks.scope import kept

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from types import TracebackType

    import httpx

_log = structlog.get_logger(__name__)

PREFIX = "reside/"
LEADER_PREFIX = "leader/"
DEFAULT_TTL_S = 30
DEFAULT_WAIT_S = 45.0
"""Longer than the time to live, so that a dead holder's lock is waited out."""
_LOOK_AGAIN_S = 10.0
_ACQUIRE = Backoff(first=0.05, longest=2.0, jitter=0.2)
"""Between attempts to take a lock while etcd is away. Its jitter keeps apart all who wait for the same etcd."""


class LockService:
    """Locks in one etcd.

    Args:
        hosts: addresses of etcd's members, e.g. `["http://etcd:2379"]`.
        holder: how the holder calls itself in others' errors; None: host name and process id.
        transport: what carries the requests; None: the network.
    """

    def __init__(
        self, hosts: Sequence[str], *, holder: str | None = None, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        self._etcd = Etcd(hosts, transport)
        self._holder = holder if holder is not None else f"{socket.gethostname()}/{os.getpid()}"
        self._releases: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Wait for locks that are just being given back, then close all connections."""
        await asyncio.gather(*self._releases)
        await self._etcd.aclose()

    @asynccontextmanager
    async def lock(
        self, key: str, *, ttl: int = DEFAULT_TTL_S, wait: float | None = DEFAULT_WAIT_S
    ) -> AsyncIterator[Held]:
        """Hold the lock of `key` while the block runs; if it is lost meanwhile, the block is cancelled.

        Args:
            key: what is locked; stands in etcd as `reside/<key>`.
            ttl: seconds after which a dead holder's lock is free again.
            wait: seconds to wait for the lock; None: without end.

        Raises:
            LockTimeout: somebody else held it all the time.
            EtcdUnavailable: etcd could not be asked all the time.
            LockLost: the lock was lost while the block ran.
        """
        full = PREFIX + key
        held = await self._acquire(full, ttl, wait)
        try:
            async with kept(held):
                yield held
        finally:
            await self._give_back(held.lease, full)

    def leader(self, name: str, *, ttl: int = DEFAULT_TTL_S) -> Leadership:
        """The leadership called `name` (`reside/leader/<name>`): see `Leadership`."""
        return Leadership(name, lambda: self.lock(f"{LEADER_PREFIX}{name}", ttl=ttl, wait=None))

    async def _acquire(self, key: str, ttl: int, wait: float | None) -> Held:
        seen = _Seen()
        try:
            async with asyncio.timeout(wait):
                while True:
                    if (taken := await self._attempt(key, ttl, seen)) is not None:
                        return taken
        except TimeoutError:
            if seen.unavailable is not None:
                raise seen.unavailable from None
            raise LockTimeout(key, seen.holder) from None

    async def _attempt(self, key: str, ttl: int, seen: _Seen) -> Held | None:
        """Try once; without success wait until another try makes sense."""
        asked_at = asyncio.get_running_loop().time()
        try:
            lease = await self._etcd.grant(ttl)
            taken = False
            try:
                outcome = await self._etcd.create(key, self._holder, lease)
                # Our own lease on it: an earlier answer to the same request was lost on its way.
                taken = outcome.succeeded or (outcome.entry is not None and outcome.entry.lease == lease)
            finally:
                if not taken:
                    await self._give_back(lease, key)
            if taken and outcome.entry is not None:
                revision = outcome.entry.create_revision
                return Held(self._etcd, key, revision, lease=lease, ttl=ttl, renewed_at=asked_at)
            seen.note_holder(outcome.entry.value if outcome.entry else "")
            if await self._etcd.wait_deleted(key, outcome.revision, at_most=_LOOK_AGAIN_S):
                seen.retries.succeeded()
                return None
        except EtcdUnavailable as error:
            seen.unavailable = error
        await asyncio.sleep(seen.retries.failed())
        return None

    async def _give_back(self, lease: int, key: str) -> None:
        """Revoke the lease in a task of its own, so that a cancelled holder's lock is free at once."""
        task = asyncio.create_task(self._revoke(lease, key), name=f"release {key}")
        self._releases.add(task)
        task.add_done_callback(self._releases.discard)
        await asyncio.shield(task)

    async def _revoke(self, lease: int, key: str) -> None:
        try:
            await self._etcd.revoke(lease)
        except EtcdUnavailable as error:  # the lease ends by itself, so this delays others but breaks nothing
            _log.warning("lock not given back; it ends with its lease", key=key, error=str(error))


class _Seen:
    """What the last tries to take a lock have shown."""

    def __init__(self) -> None:
        self.holder = ""
        self.unavailable: EtcdUnavailable | None = None
        self.retries = Retries(_ACQUIRE)

    def note_holder(self, holder: str) -> None:
        self.holder, self.unavailable = holder, None
