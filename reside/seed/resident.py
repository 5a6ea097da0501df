"""One replica inside the seed: a daemon thread with an event loop of its own, which outside threads hand work to.

Pulumi calls the bootstrap's steps in threads of its provider process; the replicas live on between these calls, so each
has a loop that belongs to nobody's call. Invariant: a resident that failed makes every later call fail with its error.
"""

from __future__ import annotations

import asyncio
import threading
from concurrent import futures
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from reside.model.errors import NotReady

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine
    from contextlib import AbstractAsyncContextManager

T = TypeVar("T")
R = TypeVar("R")


class Resident(Generic[T]):
    """A running replica.

    Args:
        name: for errors and the thread.
        opened: makes the context that the replica runs in; entered in the resident's own loop.
        work: its own code.
        end: asks the code to end by itself; without it, the code is cancelled when it is to stop.
    """

    def __init__(
        self,
        name: str,
        opened: Callable[[], AbstractAsyncContextManager[T]],
        work: Callable[[T], Awaitable[None]],
        end: Callable[[T], None] | None = None,
    ) -> None:
        self._name = name
        self._opened = opened
        self._work = work
        self._end = end
        self._ready: futures.Future[T] = futures.Future()
        self._ended: futures.Future[None] = futures.Future()
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread; returns at once."""
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self._thread.is_alive() and not self._ended.done()

    def ready(self, deadline: float) -> T:
        """Wait until the replica is started.

        Raises:
            NotReady: it was not in ``deadline`` seconds.
        """
        return self._first(self._ready, deadline, "start")

    def run(self, act: Callable[[T], Coroutine[None, None, R]], deadline: float, what: str) -> R:
        """Run a coroutine function in the replica's loop and wait for its result.

        Raises:
            NotReady: it took longer than ``deadline`` seconds, or the replica has ended.
        """
        value = self.ready(deadline)
        if self._ended.done():
            raise self._end_of_it()
        running = asyncio.run_coroutine_threadsafe(act(value), self._loop)
        try:
            return self._first(running, deadline, what)
        finally:
            running.cancel()

    def stop(self, deadline: float) -> None:
        """End the replica gracefully and wait for its end.

        Raises:
            NotReady: it did not end in ``deadline`` seconds.
        """
        if self.alive:
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(deadline)
        if self._thread.is_alive():
            raise NotReady(f"{self._name} inside the seed did not end in {deadline:.0f} s")

    def _first(self, wanted: futures.Future[R], deadline: float, what: str) -> R:
        both: list[futures.Future[Any]] = [wanted, self._ended]
        futures.wait(both, timeout=deadline, return_when=futures.FIRST_COMPLETED)
        if wanted.done():
            return wanted.result()
        if self._ended.done():
            raise self._end_of_it()
        raise NotReady(f"{self._name} inside the seed did not finish in {deadline:.0f} s: {what}")

    def _end_of_it(self) -> BaseException:
        """Why a replica that has ended does nothing more."""
        return self._ended.exception() or NotReady(f"{self._name} inside the seed has ended: run the bootstrap again")

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._live())
        except BaseException as error:  # noqa: BLE001 - handed to whoever waits for this thread
            self._ended.set_exception(error)
        else:
            self._ended.set_result(None)
        finally:
            self._loop.close()

    async def _live(self) -> None:
        async with self._opened() as value:
            work = asyncio.ensure_future(self._work(value))
            stop = asyncio.ensure_future(self._stop.wait())
            self._ready.set_result(value)
            try:
                await asyncio.wait({work, stop}, return_when=asyncio.FIRST_COMPLETED)
                if self._end is not None and not work.done():
                    self._end(value)
                    await asyncio.wait({work})
            finally:
                for task in (work, stop):
                    task.cancel()
                await asyncio.wait({work, stop})
        if not work.cancelled():
            work.result()
