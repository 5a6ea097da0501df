"""The caller of benchmarks/rpc.py in Python: calls a greeter, or a bare server with the same HTTP client."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING, Any

from reside.replica import Call, Replica
from reside.replica.contract_types import contract

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

GREETING = "registry.reside.internal/reside/contracts/greeting.v1"
RUNNING = contract({"identity": "registry.example/contracts/running.v1", "methods": {"run": {}}})
BODY = {"name": "Ada"}
caller = Replica(RUNNING)


@caller.method(RUNNING.identity, "run")
async def run(call: Call) -> dict[str, Any]:
    """Call for some seconds with some tasks; return the times of all calls, in ms."""
    target, tasks, seconds = call.body["target"], call.body["tasks"], call.body["seconds"]
    once = await _once(call, target)
    times: list[float] = []
    began = time.perf_counter()

    async def go_on() -> None:
        while (sent := time.perf_counter()) < began + seconds:
            await once()
            times.append(1000 * (time.perf_counter() - sent))

    await asyncio.gather(*(go_on() for _ in range(tasks)))
    return {"seconds": time.perf_counter() - began, "times": sorted(times)}


async def _once(call: Call, target: str) -> Callable[[], Awaitable[object]]:
    peers = {peer.name: peer for peer in await call.context.peers(GREETING)}
    if target in peers:
        return lambda: peers[target].call("greet", BODY)
    http = next(iter(peers.values())).caller.http

    async def bare() -> object:
        headers = {"content-type": "application/json"}
        content = json.dumps(BODY, separators=(",", ":"), ensure_ascii=False).encode()
        return (await http.post(target, content=content, headers=headers)).json()

    return bare


if __name__ == "__main__":
    caller.launch()
