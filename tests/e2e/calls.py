"""Calls of the greeter through its Service with a replica's credentials: a single one, or a steady stream."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx2
from e2e.administrator import address, credentials
from support.reports import report

from reside.common.tls import trusted_authorities
from reside.jazz import AccountId, now_ms, sign_request
from reside.model.endpoints import INSTANCE_HEADER, rpc_path, signed_path
from reside.model.errors import NotAllowed, ResideError, from_wire
from reside.replica.refusals import OtherInstance

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from support.platform import Platform

    from reside.jazz import Credentials

GREETING = "registry.reside.internal/reside/contracts/greeting.v1"
Refused = NotAllowed
_TOKENS = 128
"""Tokens for one call. Each is sent on a new connection, which any of the pods may get."""


@dataclass
class Outcome:
    """The results of a stream of calls."""

    calls: int = 0
    failures: list[str] = field(default_factory=list)
    versions: set[int] = field(default_factory=set)


async def call_greeter(platform: Platform, who: Credentials) -> dict[str, Any]:
    """Call `greet` once with the credentials `who`."""
    async with _client() as http:
        return await _Greeter(platform, who, http).call()


@asynccontextmanager
async def steady_calls(platform: Platform, a_second: int) -> AsyncIterator[Outcome]:
    """Call the greeter as the caller replica at this rate while the block is open; print the rate reached."""
    outcome = Outcome()
    calls: set[asyncio.Task[None]] = set()
    began = asyncio.get_running_loop().time()
    async with _client() as http, asyncio.TaskGroup() as group:
        greeter = _Greeter(platform, credentials(platform, "caller"), http)
        clock = group.create_task(_every(1 / a_second, lambda: calls.add(group.create_task(_one(greeter, outcome)))))
        yield outcome
        clock.cancel()
        seconds = asyncio.get_running_loop().time() - began
        rate = outcome.calls / seconds
        report(f"{outcome.calls} calls in {seconds:.0f} s: {rate:.1f} a second, of {a_second} asked for")
    assert outcome.calls > a_second, "the stream made no calls"


def _client() -> httpx2.AsyncClient:
    """Return a client that uses a new connection for each request. It is shared, because making one takes 10 ms."""
    limits = httpx2.Limits(max_keepalive_connections=0)
    return httpx2.AsyncClient(verify=trusted_authorities(), trust_env=False, timeout=30, limits=limits)


async def _every(seconds: float, do: Any) -> None:
    loop = asyncio.get_running_loop()
    due = loop.time()
    while True:
        do()
        due += seconds
        await asyncio.sleep(max(0.0, due - loop.time()))


async def _one(greeter: _Greeter, outcome: Outcome) -> None:
    outcome.calls += 1
    try:
        outcome.versions.add((await greeter.call())["version"])
    except (ResideError, httpx2.HTTPError) as error:
        outcome.failures.append(f"{type(error).__name__}: {error}")


class _Greeter:
    """A new connection for each call. Only a token that was made for another pod is replaced.

    Other retries would hide the effect of a rolling update.
    """

    def __init__(self, platform: Platform, who: Credentials, http: httpx2.AsyncClient) -> None:
        self._who = who
        self._http = http
        self._endpoint = f"http://{address(platform, 'greeter', 80)}"
        self._receiver = AccountId(platform.secret("greeter")["accountId"])
        self._instance = ""

    async def call(self) -> dict[str, Any]:
        for _ in range(_TOKENS):
            response = await self._post()
            answer = response.json()
            if response.is_success:
                assert isinstance(answer, dict)
                return answer
            if answer["error"]["code"] != OtherInstance.code:
                break
            self._instance = answer["instance"]
        raise from_wire(answer["error"]["code"], answer["error"]["message"])

    async def _post(self) -> httpx2.Response:
        path = rpc_path("greeter", GREETING, "greet")
        body = json.dumps({"name": "test"}).encode()
        token = sign_request(
            self._who,
            receiver=self._receiver,
            method="POST",
            path=signed_path(path, self._instance),
            body=body,
            now_ms=now_ms(),
        )
        headers = {"authorization": token, "content-type": "application/json", INSTANCE_HEADER: self._instance}
        return await self._http.post(f"{self._endpoint}{path}", content=body, headers=headers)
