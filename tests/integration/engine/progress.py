"""An engine that reports the progress of its applies, for tests that act in the middle of one."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from reside.sentinel.engine import ChangeSet, PulumiEngine, StackSpec
from reside.sentinel.engine.events import object_of
from reside.sentinel.engine.stack_operations import Apply

if TYPE_CHECKING:
    from collections.abc import Callable

    from reside.sentinel.engine.events import EventReader
    from reside.sentinel.engine.runner import CommandRunner
    from reside.sentinel.engine.settings import EngineSettings

    OnProgress = Callable[["Progress"], None]

_PHASES: dict[str, Literal["started", "done", "failed"]] = {
    "resourcePreEvent": "started",
    "resOutputsEvent": "done",
    "resOpFailedEvent": "failed",
}


@dataclass(frozen=True)
class Progress:
    """A step of the engine on one object."""

    object: str
    action: str
    phase: Literal["started", "done", "failed"]


class ObservedEngine(PulumiEngine):
    """An engine whose `apply` takes a callback, which is called in the event loop."""

    async def apply(self, stack: StackSpec, on_progress: OnProgress | None = None) -> ChangeSet:
        """Apply a stack, and call back for each step on an object."""
        if on_progress is None:
            return await super().apply(stack)
        loop, receive = asyncio.get_running_loop(), on_progress

        def create(settings: EngineSettings, runner: CommandRunner, spec: StackSpec) -> Apply:
            return _ObservedApply(
                settings, runner, spec, lambda progress: loop.call_soon_threadsafe(receive, progress) and None
            )

        return await self._run(create, stack)


class _ObservedApply(Apply):
    """An apply that reports its progress on the thread of the event pipe."""

    def __init__(
        self, settings: EngineSettings, runner: CommandRunner, stack: StackSpec, on_progress: OnProgress
    ) -> None:
        super().__init__(settings, runner, stack)
        self._on_progress = on_progress

    def _receive(self, event: dict[str, Any], reader: EventReader) -> None:
        super()._receive(event, reader)
        for kind, phase in _PHASES.items():
            if kind in event:
                metadata = event[kind]["metadata"]
                name = object_of(metadata["urn"])
                if name is not None:
                    self._on_progress(Progress(name, metadata["op"], phase))
