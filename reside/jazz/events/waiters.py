"""The waiters of a node: for changes of values and for acknowledgements. All of them end with the node."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from reside.jazz.errors import JazzError, JazzTimeout
from reside.jazz.memory.covalue import Core
from reside.jazz.wire.session import SessionLog

Unacknowledged: TypeAlias = dict[str, tuple[Core, list[tuple[SessionLog, int]]]]
"""What must be acknowledged: for each value its logs, each with the number of transactions."""


class _Flush:
    """One wait for acknowledgements."""

    def __init__(self, missing: Unacknowledged) -> None:
        self.missing = missing
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def acknowledged(self, core: Core) -> None:
        """Check a value of which the server acknowledged more."""
        _, logs = self.missing.get(core.co_id, (core, None))
        if logs is None or not core.header_acknowledged:
            return
        # Do not wait for void sessions of a value that was deleted meanwhile.
        if any(log.acknowledged < count for log, count in logs if core.is_live(log.session)):
            return
        del self.missing[core.co_id]
        if not self.missing and not self.done.done():
            self.done.set_result(None)


class Waiters:
    """All waiters of one node.

    Args:
        check_open: raises if the node is closed.
    """

    def __init__(self, check_open: Callable[[], None]) -> None:
        self._check_open = check_open
        self._values: dict[str, list[asyncio.Future[None]]] = {}
        self._flushes: list[_Flush] = []

    def awaited_ids(self) -> Iterable[str]:
        """Return the ids of the values for whose change a caller waits."""
        return list(self._values)

    def is_awaited(self, core: Core) -> bool:
        """Return whether a caller waits for a change of a value."""
        return core.co_id in self._values

    async def change(self, cores: Sequence[Core], timeout: float | None) -> bool:  # noqa: ASYNC109 - returns a value
        """Wait until one of the values changes; return False on a timeout (in seconds; None waits forever)."""
        self._check_open()
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        for core in cores:
            self._values.setdefault(core.co_id, []).append(future)
        try:
            if timeout is None:
                await future
            else:
                async with asyncio.timeout(timeout):
                    await future
        except TimeoutError:
            return False
        finally:
            for core in cores:
                waiters = self._values.get(core.co_id, [])
                if future in waiters:
                    waiters.remove(future)
                if not waiters:
                    self._values.pop(core.co_id, None)
        return True

    def changed(self, core: Core) -> None:
        """Wake the waiters of a value that changed."""
        for future in self._values.get(core.co_id, ()):
            if not future.done():
                future.set_result(None)

    def acknowledged(self, core: Core) -> None:
        """Update all flushes after the server acknowledged more of a value."""
        for flush in self._flushes:
            flush.acknowledged(core)

    async def flush(
        self,
        missing: Unacknowledged,
        timeout: float,  # noqa: ASYNC109 - the error names what is missing
        delay_reason: Callable[[], str],
    ) -> None:
        """Wait until the server has acknowledged what is missing.

        Args:
            missing: what must be acknowledged; values are removed from it as they are acknowledged.
            timeout: in seconds.
            delay_reason: returns the reason for a delay, for the error.

        Raises:
            JazzTimeout: the server did not acknowledge it in time.
        """
        if not missing:
            return
        flush = _Flush(missing)
        self._flushes.append(flush)
        try:
            async with asyncio.timeout(timeout):
                await flush.done
        except TimeoutError:
            values = ", ".join(sorted(flush.missing)[:3])
            count = len(flush.missing)
            raise JazzTimeout(f"{count} values not flushed within {timeout:g} s ({values}): {delay_reason()}") from None
        finally:
            self._flushes.remove(flush)

    def end(self, error: JazzError) -> None:
        """End all waits with an error, because the node is closed."""
        waiting: list[asyncio.Future[Any]] = [future for waiters in self._values.values() for future in waiters]
        waiting += [flush.done for flush in self._flushes]
        for future in waiting:
            if not future.done():
                future.set_exception(error)
