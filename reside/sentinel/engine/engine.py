"""The engine's port on Pulumi: keeps the promises of port.py over either runner of commands.

One operation a stack, a bounded number at the same time, each on a thread; repair after a death (operations.py); a
graceful stop. An object of this class belongs to one event loop.
"""

from __future__ import annotations

import asyncio
import traceback
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from reside.sentinel.engine.errors import EngineBroken, EngineError, EngineUnavailable, StackLocked

if TYPE_CHECKING:
    from collections.abc import Callable

    from reside.sentinel.engine.machine import Machine
    from reside.sentinel.engine.operations import Operations
    from reside.sentinel.engine.port import ChangeSet, OnEvent, StackEvent, StackSpec
    from reside.sentinel.engine.running import Operator
    from reside.sentinel.engine.settings import EngineSettings

_T = TypeVar("_T")
_STOP_SECONDS = 25.0
"""How long a graceful stop may take before engines are killed; below the 30 s that Kubernetes gives a pod."""


class PulumiEngine:
    """A :class:`reside.sentinel.engine.port.StackEngine`.

    Nothing is started, made or looked for before the first operation, and pulumi is not imported.
    """

    def __init__(self, settings: EngineSettings) -> None:
        self._settings = settings
        self._slots = asyncio.Semaphore(settings.parallel)
        self._threads = ThreadPoolExecutor(settings.parallel, "engine")
        self._machine: Machine | None = None
        self._starting = asyncio.Lock()
        self._busy: dict[str, Operator | None] = {}
        self._idle = asyncio.Event()
        self._idle.set()
        self._stopping = False

    async def preview(self, stack: StackSpec, on_event: OnEvent | None = None) -> ChangeSet:
        """See the port."""
        tell = _teller(on_event)
        return await self._operate(stack.name, lambda operations: operations.preview(stack, tell))

    async def apply(self, stack: StackSpec, on_event: OnEvent | None = None) -> ChangeSet:
        """See the port."""
        tell = _teller(on_event)
        return await self._operate(stack.name, lambda operations: operations.apply(stack, tell))

    async def destroy(self, name: str) -> ChangeSet:
        """See the port."""
        return await self._operate(name, lambda operations: operations.destroy(name, _teller(None)))

    async def export(self, name: str) -> dict[str, Any]:
        """See the port."""
        return await self._operate(name, lambda operations: operations.export(name))

    async def stop(self) -> None:
        """See the port; what has not ended after 25 seconds is killed."""
        self._stopping = True
        for operator in self._running():
            await asyncio.to_thread(operator.stop)
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await self._idle.wait()
        except TimeoutError:
            await asyncio.gather(*(asyncio.to_thread(operator.kill) for operator in self._running()))
            await self._idle.wait()
        if self._machine is not None:
            await asyncio.to_thread(self._machine.close)
        self._threads.shutdown(wait=False)

    def _running(self) -> list[Operator]:
        return [operator for operator in self._busy.values() if operator is not None]

    async def _operate(self, name: str, work: Callable[[Operations], _T]) -> _T:
        """Have ``work`` done, unless the stack is busy or we are stopping."""
        self._check()
        if name in self._busy:
            raise StackLocked(f"another operation on stack {name} is running: keep one serial lane a stack")
        self._busy[name] = None
        self._idle.clear()
        try:
            async with self._slots:
                machine = await self._ready()
                self._check()
                operator = self._busy[name] = machine.operator()
                return await self._on_a_thread(operator, partial(work, machine.operations(operator)))
        finally:
            del self._busy[name]
            if not self._busy:
                self._idle.set()

    async def _on_a_thread(self, operator: Operator, work: Callable[[], _T]) -> _T:
        """Run blocking work; if we are cancelled, kill what it runs, and wait for its end."""
        done = asyncio.get_running_loop().run_in_executor(self._threads, _guarded, work)
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            await asyncio.shield(_killed(operator, done))
            raise

    async def _ready(self) -> Machine:
        async with self._starting:
            if self._machine is None:
                self._machine = await asyncio.to_thread(_make, self._settings)
            return self._machine

    def _check(self) -> None:
        if self._stopping:
            raise EngineUnavailable("the engine is stopping")


async def _killed(operator: Operator, done: asyncio.Future[_T]) -> None:
    await asyncio.to_thread(operator.kill)
    await asyncio.wait({done})
    if not done.cancelled():
        done.exception()  # it failed because it was killed


def _guarded(work: Callable[[], _T]) -> _T:
    """Do the work; an error that is none of ours is a bug, and its text may hold secrets."""
    try:
        return work()
    except EngineError:
        raise
    except Exception as error:  # noqa: BLE001 - the edge of the room: it leaves as an error of errors.py
        raise EngineBroken(f"a bug in the engine room: {type(error).__name__} at {_place(error)}") from None


def _place(error: Exception) -> str:
    """File and line where the error was raised, without any value."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{Path(last.filename).name}:{last.lineno}"


def _teller(on_event: OnEvent | None) -> OnEvent:
    """``on_event`` for other threads: it is called in this event loop."""
    if on_event is None:
        return lambda _event: None
    loop, receive = asyncio.get_running_loop(), on_event

    def tell(event: StackEvent) -> None:
        loop.call_soon_threadsafe(receive, event)

    return tell


def _make(settings: EngineSettings) -> Machine:
    from reside.sentinel.engine.machine import Machine  # noqa: PLC0415 - imports pulumi

    return Machine(settings)
