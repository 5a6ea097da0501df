"""The `StackEngine` on Pulumi: runs at most one operation a stack and a limited number at the same time.

Each operation runs on a thread of its own. An engine belongs to one event loop.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from reside.common.transience import place_of
from reside.sentinel.engine.errors import (
    ApplyEndsProvider,
    EngineBroken,
    EngineError,
    EngineTimeout,
    EngineUnavailable,
    ProviderEnded,
    StackLocked,
)
from reside.sentinel.engine.port import StackSpec
from reside.sentinel.engine.runner import Alone
from reside.sentinel.engine.runner_factory import create_runner
from reside.sentinel.engine.stack_files import stacks_with_files
from reside.sentinel.engine.stack_operations import Apply, Destroy, Preview
from reside.sentinel.engine.state_move import misplaced
from reside.sentinel.engine.state_operations import ExportState, Forget, ImportState, MoveState

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from reside.sentinel.engine.operation import Operation
    from reside.sentinel.engine.port import ChangeSet
    from reside.sentinel.engine.runner import CommandRunner
    from reside.sentinel.engine.settings import EngineSettings

    OperationFactory = Callable[[EngineSettings, CommandRunner, StackSpec], Operation]

_STOP_SECONDS = 25.0
"""How long operations may take to stop before they are killed; less than the 30 s that Kubernetes gives a pod."""
_NO_STACK: Final = "no_stack"
"""A name that no stack can have."""
_GRACE_SECONDS = 5.0
"""How long one operation that is ended early may take to stop before it is killed."""


class PulumiEngine:
    """A `StackEngine`.

    Before `start` or the first operation, nothing is started or created.

    Operations share a process of the provider. If it ends, any of them may be the cause. So each is a suspect, and the
    next operation on its stack has a process of its own, until one succeeds. These operations run one after another.
    """

    def __init__(self, settings: EngineSettings) -> None:
        self._settings = settings
        self._slots = asyncio.Semaphore(settings.parallel)
        self._threads = ThreadPoolExecutor(settings.parallel, "engine")
        self._runner: CommandRunner | None = None
        self._runner_lock = asyncio.Lock()
        self._suspects: set[str] = set()
        """Stacks in whose last operation the provider ended."""
        self._alone = asyncio.Lock()
        self._operations: dict[str, Operation | None] = {}
        """Stack → its operation; None while the operation waits for a slot."""
        self._ends: dict[str, asyncio.Future[ChangeSet]] = {}
        """Stack → the end of its operation, once the operation runs."""
        self._idle = asyncio.Event()
        self._idle.set()
        self._stopping = False

    async def start(self) -> None:
        """Start the resident engine and its provider; see `StackEngine.start`. The command line keeps nothing running.

        A preview of nothing starts both, derives the key of the passphrase, and leaves no file, but for some in an
        object store. So an engine with one starts with its first operation.
        """
        if self._settings.engine != "cli" and self._settings.backend is None:
            await self._run(Preview, StackSpec(_NO_STACK, ()))

    async def preview(self, stack: StackSpec) -> ChangeSet:
        """Return what `apply` would do now; see `StackEngine.preview`."""
        return await self._run(Preview, stack)

    async def apply(self, stack: StackSpec) -> ChangeSet:
        """Make the cluster contain exactly the objects of the stack; see `StackEngine.apply`."""
        return await self._run(Apply, stack)

    async def destroy(self, name: str, released: frozenset[str] = frozenset()) -> ChangeSet:
        """Delete a stack and its objects; see `StackEngine.destroy`."""
        return await self._run(Destroy, StackSpec(name, (), released))

    async def export_state(self, name: str) -> bytes | None:
        """Return the state of a stack; see `StackEngine.export_state`."""
        found: list[bytes] = []
        await self._run(lambda *made: ExportState(made[0], made[1], made[2], found.append), StackSpec(name, ()))
        return found[0] if found else None

    async def import_state(self, name: str, state: bytes) -> None:
        """Replace the state of a stack; see `StackEngine.import_state`."""
        await self._run(lambda *made: ImportState(made[0], made[1], made[2], state), StackSpec(name, ()))

    async def stacks(self) -> frozenset[str]:
        """Return the names of the stacks that have files."""
        return await asyncio.to_thread(stacks_with_files, self._settings)

    async def misplaced(self) -> Mapping[str, str]:
        """Return the stacks whose states are elsewhere; see `StackEngine.misplaced`."""
        return await asyncio.to_thread(misplaced, self._settings)

    async def move_state(self, name: str, *, abandon: bool = False) -> None:
        """Move the state of a stack; see `StackEngine.move_state`."""
        await self._run(lambda *made: MoveState(*made, abandon=abandon), StackSpec(name, ()))

    async def forget(self, name: str) -> None:
        """Remove the files of a stack; see `StackEngine.forget`."""
        await self._run(Forget, StackSpec(name, ()))

    async def interrupt(self, name: str) -> None:
        """End the running operation on a stack early; see `StackEngine.interrupt`."""
        operation, end = self._operations.get(name), self._ends.get(name)
        if operation is not None and end is not None:
            await _end_early(operation, end)

    async def stop(self) -> None:
        """Stop all operations; those that have not ended after 25 s are killed."""
        self._stopping = True
        for operation in self._running():
            await asyncio.to_thread(operation.stop)
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await self._idle.wait()
        except TimeoutError:
            await asyncio.gather(*(asyncio.to_thread(operation.kill) for operation in self._running()))
            await self._idle.wait()
        if self._runner is not None:
            await asyncio.to_thread(self._runner.close)
        self._threads.shutdown(wait=False)

    def _running(self) -> list[Operation]:
        return [operation for operation in self._operations.values() if operation is not None]

    async def _run(self, create: OperationFactory, stack: StackSpec) -> ChangeSet:
        """Run an operation, unless another one runs on the stack or the engine is stopping."""
        self._check_stopping()
        if stack.name in self._operations:
            raise StackLocked(
                f"another operation on stack {stack.name} is running: the caller must serialize operations on a stack"
            )
        self._operations[stack.name] = None
        self._idle.clear()
        try:
            if stack.name in self._suspects:
                async with self._alone, self._slots:
                    return await self._run_alone(create, stack)
            async with self._slots:
                runner = await self._get_runner()
                return await self._run_with(runner, create, stack)
        except ProviderEnded:
            self._suspects.add(stack.name)
            raise
        finally:
            del self._operations[stack.name]
            self._ends.pop(stack.name, None)
            if not self._operations:
                self._idle.set()

    async def _run_alone(self, create: OperationFactory, stack: StackSpec) -> ChangeSet:
        """Run an operation on a stack that may end the provider, with a process that no other operation uses.

        Raises:
            ApplyEndsProvider: it ended the provider.
        """
        runner = Alone(await self._get_runner())
        try:
            done = await self._run_with(runner, create, stack)
        except ProviderEnded as error:
            raise ApplyEndsProvider(
                f"Pulumi's Kubernetes provider ends while it handles the stack, and no other stack can be the cause: "
                f"declare the object in another form ({error.message})",
                error.object,
            ) from error
        except EngineUnavailable:
            raise
        except EngineError:
            self._suspects.discard(stack.name)
            raise
        self._suspects.discard(stack.name)
        return done

    async def _run_with(self, runner: CommandRunner, create: OperationFactory, stack: StackSpec) -> ChangeSet:
        self._check_stopping()
        operation = self._operations[stack.name] = create(self._settings, runner, stack)
        return await self._run_on_thread(stack.name, operation)

    async def _run_on_thread(self, name: str, operation: Operation) -> ChangeSet:
        """Run an operation on a thread, until its deadline; if this task is cancelled, kill the operation."""
        deadline = self._settings.deadline
        end = self._ends[name] = asyncio.get_running_loop().run_in_executor(self._threads, _run_safely, operation)
        try:
            await asyncio.wait({end}, timeout=deadline)
            if not end.done():
                await _end_early(operation, end)
                if end.exception() is not None:
                    raise EngineTimeout(
                        f"the operation did not end within {deadline:g} s: the API server, a webhook or an object that "
                        "is being replaced does not respond; the next operation repairs the stack"
                    )
            return end.result()
        except asyncio.CancelledError:
            await asyncio.shield(_kill(operation, end))
            raise

    async def _get_runner(self) -> CommandRunner:
        async with self._runner_lock:
            if self._runner is None:
                self._runner = await asyncio.to_thread(create_runner, self._settings)
            return self._runner

    def _check_stopping(self) -> None:
        if self._stopping:
            raise EngineUnavailable("the engine is stopping")


async def _end_early(operation: Operation, done: asyncio.Future[ChangeSet]) -> None:
    """Stop an operation, or kill it if it does not stop in time; wait until its thread has ended."""
    await asyncio.to_thread(operation.stop)
    await asyncio.wait({done}, timeout=_GRACE_SECONDS)
    if not done.done():
        await _kill(operation, done)


async def _kill(operation: Operation, done: asyncio.Future[ChangeSet]) -> None:
    """Kill an operation, and wait until its thread has ended."""
    await asyncio.to_thread(operation.kill)
    await asyncio.wait({done})
    if not done.cancelled():
        done.exception()  # the operation failed because it was killed


def _run_safely(operation: Operation) -> ChangeSet:
    """Run an operation; an unexpected exception becomes an `EngineBroken` without its text, which may hold secrets."""
    try:
        return operation.run()
    except EngineError:
        raise
    except Exception as error:  # noqa: BLE001 - the edge of the package: all its errors are in errors.py
        raise EngineBroken(f"a bug in the engine package: {type(error).__name__} at {place_of(error)}") from None
