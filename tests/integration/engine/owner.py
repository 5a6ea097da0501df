"""A process that owns an engine: reads pickled settings and a stack, and prints the process id of the engine."""

from __future__ import annotations

import asyncio
import pickle
import sys
from typing import TYPE_CHECKING

from integration.engine.progress import ObservedEngine, Progress
from integration.engine.running import leader

if TYPE_CHECKING:
    from reside.sentinel.engine import EngineSettings, StackSpec


async def main(settings: EngineSettings, stack: StackSpec) -> None:
    """Apply the stack, and print the process of the engine when two objects are done."""
    engine = ObservedEngine(settings)
    done: list[Progress] = []

    def on_progress(progress: Progress) -> None:
        if progress.phase == "done":
            done.append(progress)
        if len(done) == 2:
            (operation,) = engine._operations.values()
            assert operation is not None
            sys.stdout.write(f"{leader(operation)}\n")
            sys.stdout.flush()

    await engine.apply(stack, on_progress)


if __name__ == "__main__":
    asyncio.run(main(*pickle.load(sys.stdin.buffer)))  # noqa: S301 - from the test
