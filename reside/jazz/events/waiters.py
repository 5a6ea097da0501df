"""What the callers of a node wait for: changes of values, acknowledgements, round trips. All ends with the node."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from reside.jazz.errors import JazzError, JazzTimeout
from reside.jazz.memory.covalue import Core
from reside.jazz.wire.session import SessionLog

Unacknowledged: TypeAlias = dict[str, tuple[Core, list[tuple[SessionLog, int]]]]
"""What must be acknowledged: for each value its logs, and how much of each."""


class _Flush:
    """A wait for acknowledgements."""

    def __init__(self, missing: Unacknowledged) -> None:
        self.missing = missing
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def acknowledged(self, core: Core) -> None:
        """Look again at a value of which the server acknowledged something."""
        _, logs = self.missing.get(core.co_id, (core, None))
        if logs is None or not core.header_acknowledged:
            return
        # What was written to a value that is deleted meanwhile is not wanted by anybody any more.
        if any(log.acknowledged < count for log, count in logs if core.is_live(log.session)):
            return
        del self.missing[core.co_id]
        if not self.missing and not self.done.done():
            self.done.set_result(None)


class Waiters:
    """All waits of one node.

    Args:
        check_open: raises if the node is closed.
    """

    def __init__(self, check_open: Callable[[], None]) -> None:
        self._check_open = check_open
        self._values: dict[str, list[asyncio.Future[None]]] = {}
        self._round_trips: deque[asyncio.Future[bool]] = deque()
        self._flushes: list[_Flush] = []

    def waited_for(self) -> Iterable[str]:
        """Return the values whose change somebody waits for."""
        return list(self._values)

    def is_waited_for(self, core: Core) -> bool:
        """Return whether anybody waits for a change of a value."""
        return core.co_id in self._values

    async def change(self, cores: Sequence[Core], timeout: float | None) -> bool:  # noqa: ASYNC109 - tells it by value
        """Wait until one of the values changes; False if none did in time (seconds; None waits for ever)."""
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
        """Return a value changed."""
        for future in self._values.get(core.co_id, ()):
            if not future.done():
                future.set_result(None)

    def acknowledged(self, core: Core) -> None:
        """Return the server acknowledged something of a value."""
        for flush in self._flushes:
            flush.acknowledged(core)

    async def flush(
        self,
        missing: Unacknowledged,
        timeout: float,  # noqa: ASYNC109 - the error tells what is missing
        why_not: Callable[[], str],
    ) -> None:
        """Wait until the server acknowledged what is missing.

        Raises:
            JazzTimeout: it did not in time (seconds); `why_not` says in words why.
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
            raise JazzTimeout(f"{count} values not flushed within {timeout:g} s ({values}): {why_not()}") from None
        finally:
            self._flushes.remove(flush)

    def round_trip(self) -> asyncio.Future[bool]:
        """Return a question was asked; the future tells whether it was answered, or the connection ended before."""
        self._check_open()
        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._round_trips.append(answer)
        return answer

    def answered(self) -> None:
        """Return the oldest question was answered: answers come in the order of the questions."""
        if self._round_trips:
            trip = self._round_trips.popleft()
            if not trip.done():
                trip.set_result(True)

    def disconnected(self) -> None:
        """No question asked so far will be answered."""
        while self._round_trips:
            trip = self._round_trips.popleft()
            if not trip.done():
                trip.set_result(False)

    def end(self, error: JazzError) -> None:
        """Nothing will come any more."""
        waiting: list[asyncio.Future[Any]] = [future for waiters in self._values.values() for future in waiters]
        waiting += [*(flush.done for flush in self._flushes), *self._round_trips]
        self._round_trips.clear()
        for future in waiting:
            if not future.done():
                future.set_exception(error)
