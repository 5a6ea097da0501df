"""One side of benchmarks/jazz.py with reside.jazz: the same operations as jazz_peer.mjs.

One JSON request a line on stdin, one JSON answer a line on stdout; times are seconds of the monotonic clock, which all
processes of a machine share.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import TYPE_CHECKING, Any

from reside.jazz import EVERYONE, CoMap, Credentials, Node

if TYPE_CHECKING:
    from collections.abc import Callable

_FLUSH_S = 60.0


class Peer:
    """One account, as a node that is made anew on request."""

    def __init__(self) -> None:
        """An account of its own."""
        self._credentials = Credentials.generate()
        self._url = ""
        self._node: Node
        self._echoed: list[float] = []

    async def register(self, url: str) -> None:
        """Publish the account."""
        self._url = url
        self._node = await Node(url, self._credentials).__aenter__()
        await self._node.register("bench")

    async def fresh(self) -> None:
        """Become a node with nothing in memory, connected and logged in."""
        await self._node.close()
        self._node = await Node(self._url, self._credentials).__aenter__()
        await self._node.login()

    async def share(self) -> str:
        """Make a map that everyone may write."""
        shared = await self._new_map("writer")
        shared.set("made", value=True)
        await self._flush()
        return shared.id

    async def fill(self, count: int) -> str:
        """Make a map of so many transactions."""
        filled = await self._new_map("reader")
        for number in range(count):
            filled.set(f"key{number}", f"value {number}")
            if number % 50 == 0:
                await asyncio.sleep(0)
        await self._flush()
        return filled.id

    async def write(self, count: int, privacy: str, turns: bool) -> float:
        """Write to a map, in one event-loop turn or in one turn each."""
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
        """Make groups."""
        began = time.monotonic()
        for _ in range(count):
            self._node.create_group()
        await asyncio.sleep(0)
        took = time.monotonic() - began
        await self._flush()
        return took

    async def create_maps(self, count: int, upload: bool) -> dict[str, Any]:
        """Make maps in one group, and wait until they are acknowledged if that is asked for."""
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
        """Load maps in parallel and read each."""
        began = time.monotonic()
        maps = await asyncio.gather(*(self._node.load_map(co_id) for co_id in ids))
        for number, loaded in enumerate(maps):
            check(loaded["number"], number)
        return time.monotonic() - began

    async def load_whole(self, id: str, count: int) -> float:  # noqa: A002 - the request's name
        """Load a map and read all of it."""
        began = time.monotonic()
        loaded = await self._node.load_map(id)
        check(len(loaded.as_dict()), count)
        return time.monotonic() - began

    async def load(self, id: str) -> None:  # noqa: A002 - the request's name
        """Load a map."""
        await self._node.load_map(id)

    async def until_key(self, id: str, key: str) -> float:  # noqa: A002 - the request's name
        """When a key arrives."""
        await until(await self._node.load_map(id), lambda value: key in value)
        return time.monotonic()

    async def stream(self, id: str, count: int) -> float:  # noqa: A002 - the request's name
        """Write a map, one transaction an event-loop turn; gives when it began."""
        target = await self._node.load_map(id)
        began = time.monotonic()
        for number in range(count):
            target.set(f"key{number}", f"value {number}")
            await asyncio.sleep(0)
        await self._flush()
        return began

    async def echo(self, id: str) -> None:  # noqa: A002 - the request's name
        """Answer every "ping" with a "pong", and note how long the ping was under way."""
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
        """Write pings, each after the answer to the one before; gives how long the answers were under way."""
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
        """What `echo` noted."""
        return self._echoed

    async def _new_map(self, everyone: str | None) -> CoMap:
        group = self._node.create_group()
        if everyone is not None:
            await group.add_member(EVERYONE, everyone)  # type: ignore[arg-type] # a role, by the requests above
        return group.create_map()

    async def _flush(self) -> None:
        await self._node.flush(timeout=_FLUSH_S)


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
    """What was measured must have happened."""
    if actual != expected:
        raise ValueError(f"expected {expected}, found {actual}")


async def main() -> None:
    """Answer requests until stdin ends."""
    peer = Peer()
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        request = json.loads(line)
        before = time.process_time()
        try:
            result = await getattr(peer, request["op"])(**request["args"])
            answer = {"result": result, "cpu": time.process_time() - before}
        except Exception as error:  # noqa: BLE001 - whatever it is, the parent process raises it
            answer = {"error": f"{type(error).__name__}: {error}"}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main())
