"""A replica inside the seed: a daemon thread with an event loop of its own; other threads submit coroutines to it.

Pulumi calls the steps of the bootstrap in threads of its provider process. The replicas keep running between these
calls, so each has a loop that is independent of them. Invariant: once a replica has failed, every later call raises its
error.
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


class ReplicaThread(Generic[T]):
    """A replica that runs in a thread.

    Args:
        name: name of the thread, used in errors.
        context: returns the context manager that the replica runs in; it is entered in the thread's loop.
        main: the replica's code.
        end: makes the code end gracefully; the code is cancelled if None.
    """

    def __init__(
        self,
        name: str,
        context: Callable[[], AbstractAsyncContextManager[T]],
        main: Callable[[T], Awaitable[None]],
        end: Callable[[T], None] | None = None,
    ) -> None:
        self._name = name
        self._context = context
        self._main = main
        self._end = end
        self._ready: futures.Future[T] = futures.Future()
        self._ended: futures.Future[None] = futures.Future()
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread without waiting for it."""
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether the replica is running."""
        return self._thread.is_alive() and not self._ended.done()

    def ready(self, deadline: float) -> T:
        """Wait until the replica has started.

        Raises:
            NotReady: it has not started within `deadline` seconds.
        """
        return self._wait_for(self._ready, deadline, "start")

    def run(self, function: Callable[[T], Coroutine[None, None, R]], deadline: float, what: str) -> R:
        """Run a coroutine function in the replica's loop and wait for its result.

        Raises:
            NotReady: it took longer than `deadline` seconds, or the replica has ended.
        """
        value = self.ready(deadline)
        if self._ended.done():
            raise self._error()
        running = asyncio.run_coroutine_threadsafe(function(value), self._loop)
        try:
            return self._wait_for(running, deadline, what)
        finally:
            running.cancel()

    def stop(self, deadline: float) -> None:
        """Stop the replica gracefully and wait until it has ended.

        Raises:
            NotReady: it did not end within `deadline` seconds.
        """
        if self.alive:
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(deadline)
        if self._thread.is_alive():
            raise NotReady(f"{self._name} in the seed did not end within {deadline:.0f} s")

    def _wait_for(self, result: futures.Future[R], deadline: float, what: str) -> R:
        """Wait for a result; raise the error of the replica if that ends first."""
        both: list[futures.Future[Any]] = [result, self._ended]
        futures.wait(both, timeout=deadline, return_when=futures.FIRST_COMPLETED)
        if result.done():
            return result.result()
        if self._ended.done():
            raise self._error()
        raise NotReady(f"{self._name} in the seed did not finish within {deadline:.0f} s: {what}")

    def _error(self) -> BaseException:
        """Return the error to raise for a replica that has ended."""
        return self._ended.exception() or NotReady(f"{self._name} in the seed has ended: run the bootstrap again")

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._run_main())
        except BaseException as error:  # noqa: BLE001 - raised in the threads that wait for this one
            self._ended.set_exception(error)
        else:
            self._ended.set_result(None)
        finally:
            self._loop.close()

    async def _run_main(self) -> None:
        async with self._context() as value:
            work = asyncio.ensure_future(self._main(value))
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
