"""A lock that is held: its fencing token, the check that it is still held, and the renewal of its lease."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from reside.locks.errors import EtcdUnavailable, LockLost

if TYPE_CHECKING:
    from reside.locks.etcd import Etcd

_log = structlog.get_logger(__name__)


class Held:
    """A lock that is held.

    Attributes:
        key: the lock's key in etcd.
        revision: the fencing token, which is the key's create revision; later holders have greater ones.
        lease: id of the lease that the key is bound to.
        lost: set once the lock may no longer be held; never cleared.
    """

    def __init__(
        self, etcd: Etcd, key: str, revision: int, *, holder: str, lease: int, ttl: int, renewed_at: float
    ) -> None:
        self._etcd = etcd
        self._holder = holder
        self._ttl = ttl
        self._renewed_at = renewed_at
        self.lease = lease
        self.key = key
        self.revision = revision
        self.lost = asyncio.Event()
        self._reason = ""

    def __repr__(self) -> str:
        return f"<Held {self.key} revision={self.revision}{' lost' if self.lost.is_set() else ''}>"

    async def check(self) -> None:
        """Raise unless etcd confirms that the lock is held. Call it immediately before a guarded write.

        Raises:
            LockLost: the lock is no longer held; do not write.
            EtcdUnavailable: it is unknown whether the lock is held; do not write, and repeat the operation later.
        """
        if self.lost.is_set():
            raise self.lost_error()
        outcome = await self._etcd.confirm(self.key, self.revision, self.lease)
        if not outcome.succeeded:
            self.mark_lost("its lease expired" if outcome.entry is None else "another holder has it")
            raise self.lost_error()

    def check_lease(self) -> None:
        """Raise if the lease may have expired, by the clock of this process; it does not ask etcd.

        The clock runs on while the process is stopped. So a process that wakes up after its lease has expired does not
        pass this check, even if it has not noticed the loss yet.

        Raises:
            LockLost: the lock is no longer held, or its lease was not renewed for half of its time to live.
        """
        if asyncio.get_running_loop().time() >= self._renewed_at + self._ttl / 2:
            self.mark_lost("its lease was not renewed for half of its time to live")
        if self.lost.is_set():
            raise self.lost_error()

    async def keep_alive(self) -> None:
        """Renew the lease after every third of its time to live; return when the lock is lost.

        Anybody who reaches etcd can renew any lease. So the key is written again, too, which only its user can do, and
        waiters wait for no lock whose key is not (`LockService`).

        The time to live is counted from the moment before the last successful request was sent. So the lease never
        expires in etcd earlier than here.
        """
        loop = asyncio.get_running_loop()
        pause = self._ttl / 3
        while not self.lost.is_set():
            await asyncio.sleep(pause)
            sent_at, deadline = loop.time(), self._renewed_at + self._ttl / 2
            try:
                async with asyncio.timeout_at(deadline):
                    alive = await self._renew(timeout=self._ttl / 12)
            except (EtcdUnavailable, TimeoutError) as error:
                _log.warning("lock can't be renewed", key=self.key, error=str(error) or "no response")
                if loop.time() >= deadline:
                    self.mark_lost("its lease could not be renewed for half of its time to live")
                pause = self._ttl / 24  # allows several attempts before the deadline
                continue
            if not alive:
                self.mark_lost("its lease expired")
            self._renewed_at, pause = sent_at, self._ttl / 3

    async def _renew(self, *, timeout: float) -> bool:  # noqa: ASYNC109 - httpx2's own timeout
        if not await self._etcd.keep_alive(self.lease, timeout=timeout):
            return False
        touched = await self._etcd.touch(self.key, self._holder, self.revision, self.lease, timeout=timeout)
        return touched.succeeded

    def mark_lost(self, reason: str) -> None:
        """Mark the lock as lost; the first reason is kept."""
        if not self.lost.is_set():
            _log.error("lock lost", key=self.key, revision=self.revision, reason=reason)
            self._reason = reason
            self.lost.set()

    def lost_error(self) -> LockLost:
        """Return the error that says why the lock was lost."""
        return LockLost(self.key, self._reason)
