"""Leadership: of several equal processes one works, and another takes over when it dies."""

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

    Either one term, `async with locks.leader("alpha") as held:`, which ends with `LockLost` when the leadership is
    lost, or term after term: `await locks.leader("alpha").run(work)`.

    Args:
        name: what is led.
        lock: gives the lock whose holder leads, waiting for it without end.
    """

    def __init__(self, name: str, lock: Callable[[], AbstractAsyncContextManager[Held]]) -> None:
        self.name = name
        self._lock = lock
        self._term: AbstractAsyncContextManager[Held] | None = None

    async def __aenter__(self) -> Held:
        if self._term is not None:
            raise RuntimeError(f"leadership {self.name} is entered already: take one object for each term")
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
        """Run `work` while being the leader; when that is lost, cancel it, wait for the next term, run it anew.

        `work` must begin by reading the present state: another leader may have gone on meanwhile.

        Returns:
            What `work` returned. Its errors are the caller's.
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
                    raise  # of another lock, which the work used
                _log.warning("not leading", leader=self.name, error=str(error))
            await asyncio.sleep(retries.failed())
