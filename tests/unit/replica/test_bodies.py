"""Bodies of calls: what strangers send takes a limited amount of memory and time."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import pytest
from starlette.requests import Request
from support.eventually import eventually

from reside.model.errors import InvalidInput, NotReady
from reside.replica.bodies import MAX_BODY_BYTES, Bodies

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.anyio


def request(*messages: dict[str, Any]) -> Request:
    """Return a request whose body arrives in these messages, and then stalls."""
    left: Iterator[dict[str, Any]] = iter(messages)

    async def receive() -> dict[str, Any]:
        message = next(left, None)
        if message is None:
            await asyncio.Event().wait()
            raise AssertionError
        return message

    return Request({"type": "http", "headers": []}, receive)


def part(content: bytes, *, more: bool = False) -> dict[str, Any]:
    return {"type": "http.request", "body": content, "more_body": more}


async def test_a_body_in_parts_is_read_and_counts_until_its_call_is_answered() -> None:
    bodies = Bodies()
    async with bodies.read(request(part(b"{", more=True), part(b"}"))) as content:
        assert (content, bodies.held) == (b"{}", 2)
    assert bodies.held == 0


async def test_a_body_that_is_too_long_is_refused_before_its_end() -> None:
    bodies = Bodies()
    with pytest.raises(InvalidInput, match="longer than 1048576 bytes"):
        async with bodies.read(request(part(b"x" * (MAX_BODY_BYTES + 1), more=True))):
            pass
    assert bodies.held == 0


async def test_all_bodies_together_are_limited() -> None:
    bodies = Bodies(most=10)
    async with AsyncExitStack() as calls:
        for _ in range(3):
            await calls.enter_async_context(bodies.read(request(part(b"abc"))))
        with pytest.raises(NotReady, match="too many calls"):
            await calls.enter_async_context(bodies.read(request(part(b"abc"))))
        assert bodies.held == 9
    async with bodies.read(request(part(b"abc"))) as content:
        assert content == b"abc"


async def test_the_body_that_arrives_for_the_longest_time_makes_room() -> None:
    bodies = Bodies(most=10)
    slow = [asyncio.create_task(read(bodies, request(part(b"abcde", more=True)))) for _ in range(2)]
    await eventually("two slow bodies", lambda: bodies.held, lambda held: held == 10)
    async with bodies.read(request(part(b"fast"))) as content:
        assert content == b"fast"
        with pytest.raises(NotReady, match="too many calls"):
            await slow[0]
        assert not slow[1].done()
    slow[1].cancel()
    await asyncio.gather(slow[1], return_exceptions=True)
    assert bodies.held == 0


async def read(bodies: Bodies, asked: Request) -> bytes:
    """Read a body, and answer its call at once."""
    async with bodies.read(asked) as content:
        return content


async def test_a_body_that_does_not_arrive_in_time_is_refused() -> None:
    bodies = Bodies(within_s=0.01)
    with pytest.raises(InvalidInput, match=r"within 0\.01 s"):
        async with bodies.read(request(part(b"{", more=True))):
            pass
    assert bodies.held == 0


async def test_a_caller_that_leaves_is_no_failure_of_the_call() -> None:
    bodies = Bodies()
    with pytest.raises(InvalidInput, match="left before the end"):
        async with bodies.read(request(part(b"{", more=True), {"type": "http.disconnect"})):
            pass
    assert bodies.held == 0
