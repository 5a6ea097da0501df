"""Replay protection: a receiver remembers bound request tokens, so that none is used twice (`RequestVerifier`).

In memory, the default, the record belongs to one process: it is lost on restart, and not shared with a second process
of the same receiver. After a restart the verifier therefore refuses tokens made before it started. One gap remains: the
caller's clock is ahead of the receiver's by more than the receiver's downtime. On disk there is no gap, for all
processes that share the file.
"""

from typing import Final, Protocol

SWEEP_MS: Final = 60_000
"""How long expired tokens may stay in a record."""


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
            self._next_sweep = now_ms + SWEEP_MS
        if key in self._until:
            return False
        self._until[key] = until_ms
        return True
