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
    """Apply the stack, and print the process of the engine when two objects are done.

    The events of an operation may arrive after its end, when it has no process. Then it is done again.
    """
    engine = ObservedEngine(settings)
    for _ in range(5):
        if await _apply(engine, stack):
            return
        await engine.destroy(stack.name)
    sys.exit("the events of five operations arrived after their ends")


async def _apply(engine: ObservedEngine, stack: StackSpec) -> bool:
    """Apply the stack; return whether the process of the engine was printed."""
    done: list[Progress] = []
    printed: list[int] = []

    def on_progress(progress: Progress) -> None:
        if progress.phase == "done":
            done.append(progress)
        running = [found for found in engine._operations.values() if found is not None and found._command is not None]
        if len(done) >= 2 and running and not printed:
            printed.append(leader(running[0]))
            sys.stdout.write(f"{printed[0]}\n")
            sys.stdout.flush()

    await engine.apply(stack, on_progress)
    return bool(printed)


if __name__ == "__main__":
    asyncio.run(main(*pickle.load(sys.stdin.buffer)))  # noqa: S301 - from the test
