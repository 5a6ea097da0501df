"""Export, import, move and remove states of stacks, at the request of an operator.

A state is not secret by itself: secrets in it are encrypted with the engine's passphrase. But whoever replaces a state
decides what the next apply deletes. So an imported state may have only objects that its stack may hold.

Idempotent: the same state may be imported again, because the next operation refreshes it.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import structlog

from reside.model.errors import Conflict, InvalidInput, NotAllowed, NotReady
from reside.model.sentinel_data import ABANDON, FAILED, FILE, STACK, STACKS
from reside.sentinel.contract.desired_stacks import is_stack_name
from reside.sentinel.engine import EngineError, count_objects, objects_of_state
from reside.sentinel.errors import fault_text
from reside.sentinel.objects.identity import stack_of
from reside.sentinel.term.operator_requests import Result

if TYPE_CHECKING:
    from collections.abc import Callable

    from reside.sentinel.contract.operator_requests import OperatorRequest
    from reside.sentinel.term.context import TermContext

_log = structlog.get_logger(__name__)
LARGEST: Final = 64 * 1024 * 1024
"""Bytes of a state that is imported: 500 objects of a mebibyte would not fit, and no stack comes close."""
BATCH_S: Final = 20.0
"""Seconds after which a request moves no further state: an operation of the engine that runs on the stack ends before
the command stops waiting."""
_PARALLEL: Final = 2
"""States that are moved in parallel; the other lanes of the engine are for applies."""


class StateRequests:
    """Carries out requests about states during one term.

    Args:
        context: the parts of the term.
        read_again: called with the name of a stack whose next apply must not wait for a change.
    """

    def __init__(self, context: TermContext, read_again: Callable[[str], None]) -> None:
        self._context = context
        self._read_again = read_again

    async def export(self, request: OperatorRequest) -> Result:
        """Return the state of a stack as a file.

        Raises:
            InvalidInput: the stack has no state.
        """
        name = request.text(STACK)
        if name not in await self._context.engine.stacks():  # also keeps hostile names off the volume
            raise InvalidInput(f"there is no state of a stack {name}")
        async with self._context.stack_lock(name):
            found = await self._context.engine.export_state(name)
        if found is None:
            raise InvalidInput(f"there is no state of a stack {name}")
        return Result({STACK: name, "objects": count_objects(found)}, found)

    async def replace(self, request: OperatorRequest) -> Result:
        """Replace the state of a stack, and have the stack applied, which refreshes the state.

        Raises:
            InvalidInput: there is no such stack, or it is not a state of it.
            Conflict: the state has an object of another stack, or a foreign one.
        """
        name, store = request.text(STACK), self._context.guard.store
        state = await self._read_file(request)
        if not (is_stack_name(name) and self._is_known(name)):
            raise InvalidInput(f"there is no stack {name}: it is neither declared nor stored")
        objects = objects_of_state(state, name, self._context.guard.api.namespace)
        async with self._context.stack_lock(name):
            await self._context.lease.check()
            for key in sorted(objects):
                await self._check_object(name, key)
            _log.info("importing a state", of=name, objects=len(objects), by=request.by)
            await self._context.engine.import_state(name, state)
            stored = store.stacks.get(name)
            if stored is not None:
                await store.save_aside(replace(stored, applied=None))
        self._read_again(name)
        return Result({STACK: name, "objects": len(objects)})

    async def prune(self, request: OperatorRequest) -> Result:
        """Remove the states that belong to no stack; return them."""
        engine, found = self._context.engine, {}
        for name in sorted(await engine.stacks()):
            if self._is_known(name):
                continue
            async with self._context.stack_lock(name):
                state = await engine.export_state(name)
                found[name] = f"{count_objects(state or b'')} objects"
                if request.is_dry_run or self._is_known(name):
                    continue
                await self._context.lease.check()
                _log.info("removing the state of no stack", of=name, by=request.by)
                await engine.forget(name)
        return Result({STACKS: found})

    async def migrate(self, request: OperatorRequest) -> Result:
        """Move states that are in another backend than this Sentinel's to it; return what became of each.

        What does not fit into `BATCH_S` is not moved, and left out of the answer. The next operation on a stack moves
        its state, too, so it does not matter which of both does it.
        """
        names, elsewhere = request.stacks(), await self._context.engine.misplaced()
        chosen = {name: place for name, place in elsewhere.items() if not names or name in names}
        if request.is_dry_run:
            return Result({STACKS: chosen})
        loop, left, done = asyncio.get_running_loop(), sorted(chosen, reverse=True), dict[str, str]()
        end = loop.time() + BATCH_S

        async def move() -> None:
            while left and (not done or loop.time() < end):
                name = left.pop()
                done[name] = await self._move(name, chosen[name], abandon=request.is_set(ABANDON), by=request.by)

        async with asyncio.TaskGroup() as tasks:
            for _ in range(_PARALLEL):
                tasks.create_task(move())
        return Result({STACKS: dict(sorted(done.items()))})

    async def _move(self, name: str, place: str, *, abandon: bool, by: str) -> str:
        """Move one state; return what became of it, for people."""
        try:
            async with self._context.stack_lock(name):
                await self._context.lease.check()
                _log.info("moving the state of a stack", of=name, origin=place, abandon=abandon, by=by)
                await self._context.engine.move_state(name, abandon=abandon)
        except EngineError as error:
            return f"{FAILED}{fault_text(error)}"
        return f"given up in {place}" if abandon else f"moved from {place}"

    def _is_known(self, name: str) -> bool:
        return name in self._context.guard.store.stacks or name in self._context.data.desired

    async def _read_file(self, request: OperatorRequest) -> bytes:
        file = await self._context.replica.node.load_file(request.text(FILE), max_bytes=LARGEST)
        if file.created_by != request.by:
            raise NotAllowed(f"the file was written by {file.created_by}, not by {request.by}")
        return await asyncio.to_thread(file.read)

    async def _check_object(self, stack: str, key: str) -> None:
        """Check that a stack may hold an object, so that its apply may delete it."""
        guard = self._context.guard
        if not guard.cache.ready.is_set():
            raise NotReady("the watches of Kubernetes are not complete yet: try again")
        holder = guard.store.holder(key)
        if holder not in (None, stack):
            raise Conflict(f"the state has {key}, which belongs to the stack {holder}")
        live = guard.cache.get(key) or await guard.api.get(key)
        if live is not None and stack_of(live) not in (None, stack):
            raise Conflict(f"the state has {key}, which carries the label of the stack {stack_of(live)}")
        if live is not None and guard.cache.get(key) is None:
            raise Conflict(f"the state has {key}, which exists and does not carry the Sentinel's label")
