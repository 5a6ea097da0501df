"""The Sentinel as a process that also measures how long its event loop stands still: `fleet_process.py FILE`.

A timer is due every 10 ms. How late it comes, and how much CPU time the thread of the loop has used meanwhile, tells
how long the loop ran something else. On a busy machine the process itself waits for a core, so that the CPU time says
more. The largest values are written to FILE. Remove FILE to reset them. The timer itself takes more than a hundredth
of a core, so SIGUSR1 stops it, and starts it again.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from pathlib import Path

from reside.sentinel import __main__ as sentinel
from reside.sentinel.settings import SentinelSettings  # noqa: TC001 - beside its module

_TICK_S = 0.01
_WRITE_S = 0.5


async def measure(file: Path) -> None:
    """Write the longest standstill until cancelled: seconds, and seconds of CPU time of the loop's thread."""
    longest, loop = {"seconds": 0.0, "cpu": 0.0}, asyncio.get_running_loop()
    written, measuring = loop.time(), asyncio.Event()
    measuring.set()
    loop.add_signal_handler(signal.SIGUSR1, lambda: measuring.clear() if measuring.is_set() else measuring.set())
    while True:
        await measuring.wait()
        began, used = loop.time(), time.thread_time()
        await asyncio.sleep(_TICK_S)
        late = {"seconds": loop.time() - began - _TICK_S, "cpu": time.thread_time() - used}
        longest = {name: max(longest[name], late[name]) for name in longest}
        if loop.time() - written >= _WRITE_S:
            if not file.exists():  # noqa: ASYNC240 - a few bytes, twice a second
                longest = late
            file.write_text(json.dumps(longest))  # noqa: ASYNC240
            written = loop.time()


async def run(settings: SentinelSettings) -> None:
    """Run the Sentinel, and measure."""
    measuring = asyncio.create_task(measure(Path(sys.argv[1])))
    try:
        await _run(settings)
    finally:
        measuring.cancel()


_run = sentinel.run
sentinel.run = run

if __name__ == "__main__":
    sys.exit(sentinel.main())
