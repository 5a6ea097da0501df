"""A process that owns an engine: settings and stack come pickled; the engine's process id goes out in the middle."""

from __future__ import annotations

import asyncio
import pickle
import sys

from integration.engine.running import leader

from reside.sentinel.engine import EngineSettings, PulumiEngine, StackEvent, StackSpec


async def main(settings: EngineSettings, stack: StackSpec) -> None:
    """Apply the stack, and say which process does it once two objects are done."""
    engine = PulumiEngine(settings)
    done: list[StackEvent] = []

    def on_event(event: StackEvent) -> None:
        if event.phase == "done":
            done.append(event)
        if len(done) == 2:
            (operator,) = engine._busy.values()
            assert operator is not None
            sys.stdout.write(f"{leader(operator)}\n")
            sys.stdout.flush()

    await engine.apply(stack, on_event)


if __name__ == "__main__":
    asyncio.run(main(*pickle.load(sys.stdin.buffer)))  # noqa: S301 - from the test
