"""What a receiver of bound request tokens remembers, so that none is used twice (`RequestVerifier`).

In memory, the default, it is one process's knowledge: a restart forgets it, and a second process of the same receiver
does not share it. Against the restart the verifier refuses tokens made before it started. That leaves one gap: a caller
whose clock is ahead of the receiver's by more than the receiver was down. On disk there is none, for all processes that
share the file.
"""

import asyncio
import sqlite3
from pathlib import Path
from typing import Final, Protocol

_BUSY_S: Final = 10.0
_SWEEP_MS: Final = 60_000


class UsedTokens(Protocol):
    """The tokens that were used and are not too old yet.

    Attributes:
        lasts: Whether it outlives the process.
    """

    @property
    def lasts(self) -> bool:
        """Whether it outlives the process."""

    async def use(self, key: str, *, until_ms: int, now_ms: int) -> bool:
        """Notes the use of a token; only signed tokens get here, so nobody can fill it up.

        Args:
            key: Names the token.
            until_ms: When it may be forgotten, because it is too old anyway.
            now_ms: The receiver's clock.

        Returns:
            Whether this was its first use.
        """


class UsedTokensInMemory:
    """Remembers for as long as the process lives."""

    lasts = False

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
    """Remembers in an SQLite file, which several processes of one machine may share.

    Args:
        path: The file; made if it is not there. Close it with `close`.
    """

    lasts = True

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
        """Closes the file."""
        self._database.close()

    def _use(self, key: str, until_ms: int, now_ms: int) -> bool:
        if now_ms >= self._next_sweep:
            self._database.execute("DELETE FROM used WHERE until < ?", (now_ms,))
            self._next_sweep = now_ms + _SWEEP_MS
        done = self._database.execute("INSERT OR IGNORE INTO used VALUES (?, ?)", (key, until_ms))
        return done.rowcount == 1
