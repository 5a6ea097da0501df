"""Helpers for tests with several Jazz accounts on one server."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Self

from support.eventually import eventually

from reside.jazz import AccountId, CoFeed, CoList, CoMap, CoPlainText, Credentials, Group, Node, now_ms

if TYPE_CHECKING:
    from collections.abc import Sequence

_WITHIN_S = 60.0


class Nodes:
    """Creates registered nodes, and closes them at the end of the block."""

    def __init__(self, url: str | Sequence[str]) -> None:
        self._url = url
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self._stack.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._stack.aclose()

    async def __call__(self, name: str = "someone", **arguments: Any) -> Node:
        """Return a node with a new account."""
        node = await self._stack.enter_async_context(Node(self._url, Credentials.generate(), **arguments))
        await node.register(name)
        return node

    async def again(self, credentials: Credentials, *, register: bool = False, **arguments: Any) -> Node:
        """Return another node of the same account; with `register`, the first one."""
        if register:
            node = await self._stack.enter_async_context(Node(self._url, credentials, **arguments))
            await node.register("someone")
            return node
        return await self._logged_in(credentials, **arguments)

    async def login(self, account_id: str, agent_secret: str) -> Node:
        """Return a node of an account that another client created."""
        return await self._logged_in(Credentials(AccountId(account_id), agent_secret))

    async def _logged_in(self, credentials: Credentials, **arguments: Any) -> Node:
        node = await self._stack.enter_async_context(Node(self._url, credentials, **arguments))
        await node.login()
        return node


def content(value: Any) -> Any:
    """Return a value's content as plain data."""
    if isinstance(value, CoMap):
        return value.as_dict()
    if isinstance(value, CoList):
        return value.as_list()
    if isinstance(value, CoPlainText):
        return str(value)
    if isinstance(value, CoFeed):
        return [entry.value for entry in value.entries()]
    if isinstance(value, Group):
        return value.members()
    raise TypeError(type(value).__name__)


class Clock:
    """A clock that returns each time once, since JavaScript clients order transactions of the same time differently."""

    def __init__(self) -> None:
        self._now = now_ms()

    def __call__(self) -> int:
        """Return the next time."""
        self._now += 10
        return self._now


async def until(value: Any, expected: Any) -> None:
    """Wait until a value's content equals `expected` or, if that is a function, until it returns true for the value.

    A function may look at what a watch does not report, such as transactions that do not count, so it is polled.
    """
    if callable(expected):
        await eventually(f"{value}", lambda: value, expected, within=_WITHIN_S, show=lambda seen: str(content(seen)))
        return
    try:
        async with asyncio.timeout(_WITHIN_S), value.watch() as changes:
            async for state in changes:
                if content(state) == expected:
                    return
    except TimeoutError:
        raise AssertionError(f"{value} is still {content(value)}, expected {expected}") from None
