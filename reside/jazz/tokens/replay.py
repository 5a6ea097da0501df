"""Replay protection: a receiver remembers bound request tokens, so that none is used twice (`RequestVerifier`).

In memory, the default, the record belongs to one process: it is lost on restart, and not shared with a second process
of the same receiver. After a restart the verifier therefore refuses tokens made before it started. One gap remains: the
caller's clock is ahead of the receiver's by more than the receiver's downtime. On disk there is no gap, for all
processes that share the file.
"""

import asyncio
import sqlite3
from pathlib import Path
from typing import Final, Protocol

_BUSY_S: Final = 10.0
_SWEEP_MS: Final = 60_000


class UsedTokens(Protocol):
    """A record of used tokens that have not expired.

    Attributes:
        persistent: whether the record outlives the process.
    """

    @property
    def persistent(self) -> bool:
        """Whether the record outlives the process."""

    async def use(self, key: str, *, until_ms: int, now_ms: int) -> bool:
        """Record the use of a token. Only tokens with a valid signature are recorded, so others can't fill the record.

        Args:
            key: identifies the token.
            until_ms: when the record may be dropped because the token has expired, in ms since the epoch.
            now_ms: the receiver's clock, ms since the epoch.

        Returns:
            whether this was its first use.
        """


class UsedTokensInMemory:
    """A record in memory, lost when the process ends."""

    persistent = False

    def __init__(self) -> None:
        self._until: dict[str, int] = {}
        self._next_sweep = 0

    def __len__(self) -> int:
        return len(self._until)

    async def use(self, key: str, *, until_ms: int, now_ms: int) -> bool:
        """See `UsedTokens.use`."""
        if now_ms >= self._next_sweep:
            self._until = {known: until for known, until in self._until.items() if until >= now_ms}
            self._next_sweep = now_ms + _SWEEP_MS
        if key in self._until:
            return False
        self._until[key] = until_ms
        return True


class UsedTokensOnDisk:
    """A record in an SQLite file, which several processes of one machine may share.

    Args:
        path: the file; created if missing. Close it with `close`.
    """

    persistent = True

    def __init__(self, path: Path) -> None:
        self._lock = asyncio.Lock()
        self._next_sweep = 0
        self._database = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
        self._database.execute("PRAGMA journal_mode=WAL")
        self._database.execute("CREATE TABLE IF NOT EXISTS used (key TEXT PRIMARY KEY, until INTEGER) WITHOUT ROWID")

    async def use(self, key: str, *, until_ms: int, now_ms: int) -> bool:
        """See `UsedTokens.use`."""
        async with self._lock:
            return await asyncio.to_thread(self._use, key, until_ms, now_ms)

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def _use(self, key: str, until_ms: int, now_ms: int) -> bool:
        if now_ms >= self._next_sweep:
            self._database.execute("DELETE FROM used WHERE until < ?", (now_ms,))
            self._next_sweep = now_ms + _SWEEP_MS
        done = self._database.execute("INSERT OR IGNORE INTO used VALUES (?, ?)", (key, until_ms))
        return done.rowcount == 1
