"""Measure what single events cost the Sentinel, among 50 and 1,000 stacks of five objects: CPU, and stalls of its loop.

Jazz and the volume are real; the Kubernetes API and the engine are in memory, so that only the Sentinel's own work is
measured. CPU is that of the process, with its threads. The longest stall is measured in a second round, since the probe
takes CPU itself. The ratio of the rows is the peer: an event should cost as much among 1,000 stacks as among 50.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "tests")]

from support.jazz_server import jazz_server  # noqa: E402 - needs the path above, as all that follow
from support.sentinel_fleet import Fleet  # noqa: E402

from benchmarks.command import run  # noqa: E402
from reside.jazz import Credentials, Node  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

PROBE_S = 0.002


class Probe:
    """Measures for how long the event loop does not respond, from a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._ended = threading.Event()
        self.longest_ms = 0.0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ended.wait(PROBE_S):
            answered, began = threading.Event(), time.monotonic()
            self._loop.call_soon_threadsafe(answered.set)
            answered.wait(30)
            self.longest_ms = max(self.longest_ms, 1000 * (time.monotonic() - began))

    async def end(self) -> float:
        """End it, and return the longest stall in ms."""
        self._ended.set()
        await asyncio.to_thread(self._thread.join)
        return self.longest_ms


async def cost(
    fleet: Fleet, cause: Callable[[int], None], rounds: int, *, by_others: bool = False
) -> tuple[float, float]:
    """Return CPU in ms of one event, and the longest stall in ms; what others do to cause it does not count."""
    used = 0.0
    for number in range(rounds):
        began = time.process_time()
        cause(number)
        if by_others:
            began = time.process_time()
        await fleet.settled()
        used += time.process_time() - began
    probe = Probe()
    for number in range(rounds, 2 * rounds):
        cause(number)
        await fleet.settled()
    return 1000 * used / rounds, await probe.end()


async def measure_fleet(url: str, folder: Path, stacks: int, rounds: int) -> dict[str, tuple[float, float]]:
    """Return the cost of each event in a fleet of so many stacks."""
    async with Node(url, Credentials.generate()) as node:
        await node.register("sentinel")
        fleet = Fleet(node, folder)
        names = [f"stack-{number:04}" for number in range(stacks)]
        for name in names:
            fleet.declare(name)
        await node.flush(timeout=120)
        async with fleet.running():
            return {
                "one watch event": await cost(fleet, lambda n: fleet.show(names[n], n), rounds),
                "one list of a quiet kind": await cost(fleet, lambda _: fleet.api.relist(), rounds),
                "one entry added": await cost(fleet, lambda n: fleet.declare(f"new-{n}"), rounds, by_others=True),
            }


async def measure(small: int, large: int, rounds: int) -> None:
    """Print the figures of both sizes."""
    found = []
    with jazz_server(MODE="members") as server:
        for size in (small, large):
            with tempfile.TemporaryDirectory() as folder:
                found.append(await measure_fleet(server.url, Path(folder), size, rounds))
    print(f"{'':26} | {f'{small} stacks':>22} | {f'{large} stacks':>22} |")
    print(f"{'':26} | {'CPU ms':>10} {'stall ms':>11} | {'CPU ms':>10} {'stall ms':>11} | CPU ratio")
    for event, (cpu, stall) in found[0].items():
        more, longer = found[1][event]
        print(f"{event:26} | {cpu:10.1f} {stall:11.1f} | {more:10.1f} {longer:11.1f} | {more / cpu:9.2f}")


if __name__ == "__main__":
    run(measure, __doc__, small=50, large=1_000, rounds=10)
