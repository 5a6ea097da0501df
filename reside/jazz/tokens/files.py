"""A record of used request tokens in a file; see `reside.jazz.tokens.replay`."""

import asyncio
import sqlite3
from pathlib import Path
from typing import Final

from reside.jazz.tokens.replay import SWEEP_MS

_BUSY_S: Final = 10.0


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
            self._next_sweep = now_ms + SWEEP_MS
        done = self._database.execute("INSERT OR IGNORE INTO used VALUES (?, ?)", (key, until_ms))
        return done.rowcount == 1
