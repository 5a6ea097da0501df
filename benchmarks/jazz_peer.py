"""The Python side of benchmarks/jazz.py, with reside.jazz: the same operations as jazz_peer.mjs.

Each line of stdin is a JSON request, each line of stdout is the JSON response to one. Times are seconds of the
monotonic clock, which all processes of a machine share.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reside.jazz import EVERYONE, CoMap, Credentials, Node

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

_FLUSH_S = 60.0
MIB = 1 << 20


class Peer:
    """One account, and its current node."""

    def __init__(self) -> None:
        """Generate an account."""
        self._credentials = Credentials.generate()
        self._url = ""
        self._node: Node
        self._echoed: list[float] = []

    async def register(self, url: str) -> None:
        """Connect the first node and register the account."""
        self._url = url
        self._node = await Node(url, self._credentials).__aenter__()
        await self._node.register("bench")

    async def fresh(self) -> None:
        """Replace the node by a new one with nothing in memory, connected and logged in."""
        await self._node.close()
        self._node = await Node(self._url, self._credentials).__aenter__()
        await self._node.login()

    async def import_time(self) -> float:
        """Return how long a new process of this interpreter takes to import the package, in seconds."""
        program = "import time; began = time.perf_counter(); import reside.jazz; print(time.perf_counter() - began)"
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", program, stdout=pipe)
        out, _ = await process.communicate()
        return float(out)

    async def share(self) -> str:
        """Create a map that everyone may write, and return its id."""
        shared = await self._new_map("writer")
        shared.set("made", value=True)
        await self._flush()
        return shared.id

    async def fill(self, count: int) -> str:
        """Create a map of `count` transactions, and return its id."""
        filled = await self._new_map("reader")
        for number in range(count):
            filled.set(f"key{number}", f"value {number}")
            if number % 50 == 0:
                await asyncio.sleep(0)
        await self._flush()
        return filled.id

    async def write(self, count: int, privacy: str, turns: bool) -> float:
        """Write to a map, in one event-loop turn or in a turn each; return the seconds."""
        target = await self._new_map(None)
        await self._flush()
        core = self._node._host.store.core(target.id)
        began = time.monotonic()
        for number in range(count):
            key, value = f"key{number % 100}", f"value {number}"
            if privacy == "private":
                target.set(key, value)
            else:
                self._node._host.write_trusting(core, key, value, latest=0)
            if turns:
                await asyncio.sleep(0)
        check(target.get(f"key{(count - 1) % 100}"), f"value {count - 1}")
        await asyncio.sleep(0)
        took = time.monotonic() - began
        await self._flush()
        return took

    async def create_groups(self, count: int) -> float:
        """Create groups; return the seconds."""
        began = time.monotonic()
        for _ in range(count):
            self._node.create_group()
        await asyncio.sleep(0)
        took = time.monotonic() - began
        await self._flush()
        return took

    async def create_maps(self, count: int, upload: bool) -> dict[str, Any]:
        """Create maps in one group; with `upload`, the time includes the wait until they are acknowledged."""
        group = self._node.create_group()
        await group.add_member(EVERYONE, "reader")
        await self._flush()
        began = time.monotonic()
        ids = [group.create_map({"number": number, "text": f"value {number}"}).id for number in range(count)]
        await (self._flush() if upload else asyncio.sleep(0))
        took = time.monotonic() - began
        await self._flush()
        return {"took": took, "ids": ids}

    async def load_maps(self, ids: list[str]) -> float:
        """Load maps in parallel and read each; return the seconds."""
        began = time.monotonic()
        maps = await asyncio.gather(*(self._node.load_map(co_id) for co_id in ids))
        for number, loaded in enumerate(maps):
            check(loaded["number"], number)
        return time.monotonic() - began

    async def load_whole(self, id: str, count: int) -> float:  # noqa: A002 - the request's name
        """Load a map and read all of it; return the seconds."""
        began = time.monotonic()
        loaded = await self._node.load_map(id)
        check(len(loaded.as_dict()), count)
        return time.monotonic() - began

    async def load(self, id: str) -> None:  # noqa: A002 - the request's name
        """Load a map."""
        await self._node.load_map(id)

    async def until_key(self, id: str, key: str) -> float:  # noqa: A002 - the request's name
        """Wait until a key arrives, and return the time."""
        await until(await self._node.load_map(id), lambda value: key in value)
        return time.monotonic()

    async def stream(self, id: str, count: int) -> float:  # noqa: A002 - the request's name
        """Write to a map, one transaction in each event-loop turn; return the time of the start."""
        target = await self._node.load_map(id)
        began = time.monotonic()
        for number in range(count):
            target.set(f"key{number}", f"value {number}")
            await asyncio.sleep(0)
        await self._flush()
        return began

    async def echo(self, id: str) -> None:  # noqa: A002 - the request's name
        """Respond to every "ping" with a "pong", and record the latency of each ping."""
        self._echoed = []
        last = 0

        def answer(value: CoMap) -> None:
            nonlocal last
            ping = value.get("ping")
            if ping is None or ping["number"] == last:
                return
            self._echoed.append(time.monotonic() - ping["at"])
            last = ping["number"]
            value.set("pong", {"number": last, "at": time.monotonic()})

        (await self._node.load_map(id)).on_change(answer)

    async def ping(self, id: str, count: int) -> list[float]:  # noqa: A002 - the request's name
        """Write pings, each after the response to the previous one; return the latencies of the responses."""
        shared = await self._node.load_map(id)
        delays = []
        for number in range(1, count + 1):

            def answered(value: CoMap, number: int = number) -> bool:
                pong = value.get("pong")
                if pong is None or pong["number"] != number:
                    return False
                delays.append(time.monotonic() - pong["at"])
                return True

            shared.set("ping", {"number": number, "at": time.monotonic()})
            await until(shared, answered)
        return delays

    async def echoed(self) -> list[float]:
        """Return the latencies that `echo` recorded."""
        return self._echoed

    async def write_file(self, mib: int) -> dict[str, Any]:
        """Upload a file; return its id, the seconds, and how long the event loop was held at most."""
        group = self._node.create_group()
        await group.add_member(EVERYONE, "reader")
        await self._flush()

        async def source() -> AsyncIterator[bytes]:
            for _ in range(mib):
                yield b"\x07" * MIB

        async with heartbeat() as beat:
            began = time.monotonic()
            file = group.open_file("application/octet-stream", size=mib * MIB)
            await file.push_all(source())
            await self._flush()
            took = time.monotonic() - began
        return {"took": took, "held": beat.held, "id": file.id}

    async def read_file(self, id: str, mib: int) -> dict[str, Any]:  # noqa: A002 - the request's name
        """Load a file and read all of it; return the seconds, and how long the event loop was held at most."""
        size = 0
        async with heartbeat() as beat:
            began = time.monotonic()
            file = await self._node.open_file(id)
            async for part in file.chunks():
                size += len(part)
            took = time.monotonic() - began
        check(size, mib * MIB)
        return {"took": took, "held": beat.held}

    async def memory(self) -> int:
        """Return the resident size of this process in bytes, after a collection of garbage."""
        gc.collect()
        return resident_size()

    async def _new_map(self, everyone: str | None) -> CoMap:
        group = self._node.create_group()
        if everyone is not None:
            await group.add_member(EVERYONE, everyone)  # type: ignore[arg-type] # a role, by the requests above
        return group.create_map()

    async def _flush(self) -> None:
        await self._node.flush(timeout=_FLUSH_S)


@dataclass
class Beat:
    """What a heartbeat has measured.

    Attributes:
        held: the longest time in seconds for which the event loop ran nothing else.
    """

    held: float = 0.0


@asynccontextmanager
async def heartbeat() -> AsyncIterator[Beat]:
    """Measure how long the event loop is held, with a timer of one millisecond."""
    beat, loop = Beat(), asyncio.get_running_loop()
    last = loop.time()
    timer: asyncio.TimerHandle

    def tick() -> None:
        nonlocal last, timer
        now = loop.time()
        beat.held, last = max(beat.held, now - last), now
        timer = loop.call_later(0.001, tick)

    tick()
    try:
        yield beat
    finally:
        timer.cancel()
        tick()
        timer.cancel()


def resident_size() -> int:
    """Return the resident size of this process in bytes."""
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


async def until(value: CoMap, condition: Callable[[CoMap], bool]) -> None:
    """Wait until a condition holds for a map's content."""
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def look(value: CoMap) -> None:
        if not done.done() and condition(value):
            done.set_result(None)

    stop = value.on_change(look)
    look(value)
    try:
        await done
    finally:
        stop()


def check(actual: object, expected: object) -> None:
    """Raise unless the measured operation had the expected result."""
    if actual != expected:
        raise ValueError(f"expected {expected}, found {actual}")


async def main() -> None:
    """Respond to requests until stdin ends."""
    peer = Peer()
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        request = json.loads(line)
        before = time.process_time()
        try:
            result = await getattr(peer, request["op"])(**request["args"])
            answer = {"result": result, "cpu": time.process_time() - before}
        except Exception as error:  # noqa: BLE001 - the parent process raises it
            answer = {"error": f"{type(error).__name__}: {error}"}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main())
