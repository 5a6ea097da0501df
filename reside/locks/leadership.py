"""Leader election: of several processes, one leads; if it crashes, another takes over."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

import structlog

from reside.common.backoff import Retries
from reside.locks.errors import EtcdUnavailable, LockLost

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import AbstractAsyncContextManager
    from types import TracebackType

    from reside.locks.held import Held

_log = structlog.get_logger(__name__)
_Result = TypeVar("_Result")


class Leadership:
    """The leadership of one name.

    `async with locks.leader("alpha") as held:` is one term; it raises `LockLost` when the leadership is lost.
    `await locks.leader("alpha").run(work)` runs one term after another.

    Args:
        name: name of the leadership.
        lock: takes the lock whose holder leads; it waits without a timeout.
    """

    def __init__(self, name: str, lock: Callable[[], AbstractAsyncContextManager[Held]]) -> None:
        self.name = name
        self._lock = lock
        self._term: AbstractAsyncContextManager[Held] | None = None

    async def __aenter__(self) -> Held:
        if self._term is not None:
            raise RuntimeError(f"leadership {self.name} is in use: create an object for each term")
        self._term = self._lock()
        return await self._term.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        if self._term is None:
            return None
        term, self._term = self._term, None
        return await term.__aexit__(kind, error, trace)

    async def run(self, work: Callable[[Held], Awaitable[_Result]]) -> _Result:
        """Run `work` while leading; if the leadership is lost, cancel it, and run it again in the next term.

        `work` must start by reading the current state, because another leader may have changed it.

        Returns:
            the result of `work`. Its errors are raised.
        """
        retries = Retries()
        while True:
            held: Held | None = None
            try:
                async with self._lock() as held:
                    _log.info("leading", leader=self.name, revision=held.revision)
                    retries.succeeded()
                    return await work(held)
            except (LockLost, EtcdUnavailable) as error:
                if held is not None and not held.lost.is_set():
                    raise  # the error of another lock, which `work` used
                _log.warning("not leading", leader=self.name, error=str(error))
            await asyncio.sleep(retries.failed())
