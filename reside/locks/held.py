"""One holding of a lock: its fencing revision, whether it is still in force, and the task that keeps it so."""

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
        revision: the fencing token, the key's create revision; every later holder's is greater.
        lease: id of the lease that the key hangs on.
        lost: set once the lock can no longer be trusted. Never cleared.
    """

    def __init__(self, etcd: Etcd, key: str, revision: int, *, lease: int, ttl: int, renewed_at: float) -> None:
        self._etcd = etcd
        self._ttl = ttl
        self._renewed_at = renewed_at
        self.lease = lease
        self.key = key
        self.revision = revision
        self.lost = asyncio.Event()
        self._why = ""

    def __repr__(self) -> str:
        return f"<Held {self.key} revision={self.revision}{' lost' if self.lost.is_set() else ''}>"

    async def check(self) -> None:
        """Go on only if etcd confirms that this holding is in force; ask immediately before a guarded write.

        Raises:
            LockLost: it is not; nothing that it guards may be written.
            EtcdUnavailable: nobody can tell; treat it like lost, and try the whole again later.
        """
        if self.lost.is_set():
            raise self.loss()
        outcome = await self._etcd.confirm(self.key, self.revision, self.lease)
        if not outcome.succeeded:
            self.lose("its lease ended" if outcome.entry is None else "somebody else holds it now")
            raise self.loss()

    async def keep(self) -> None:
        """Renew the lease every third of its time; return when the lock is lost. Runs as a task of the lock's block.

        Times count from before the last successful request was sent, so etcd's own clock of the lease is never ahead.
        """
        loop = asyncio.get_running_loop()
        pause = self._ttl / 3
        while not self.lost.is_set():
            await asyncio.sleep(pause)
            sent_at, deadline = loop.time(), self._renewed_at + self._ttl / 2
            try:
                async with asyncio.timeout_at(deadline):
                    alive = await self._etcd.keep_alive(self.lease, timeout=self._ttl / 12)
            except (EtcdUnavailable, TimeoutError) as error:
                _log.warning("lock can't be renewed", key=self.key, error=str(error) or "no answer")
                if loop.time() >= deadline:
                    self.lose("it could not be renewed for half its time to live")
                pause = self._ttl / 24  # so that several tries fit in before the half is over
                continue
            if not alive:
                self.lose("its lease ended")
            self._renewed_at, pause = sent_at, self._ttl / 3

    def lose(self, why: str) -> None:
        """Note that the lock can't be trusted any more; the first reason stays."""
        if not self.lost.is_set():
            _log.error("lock lost", key=self.key, revision=self.revision, why=why)
            self._why = why
            self.lost.set()

    def loss(self) -> LockLost:
        """The error that says why the lock was lost."""
        return LockLost(self.key, self._why)
