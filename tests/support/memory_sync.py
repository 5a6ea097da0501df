"""A sync server in the process of the test: the state machine of `reside.jazz.server` with lines instead of sockets.

Nodes use all of their code but the WebSocket. A line delivers in order, in later turns of the event loop; what was not
delivered when it ends is lost.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

from reside.jazz.server.hub import Hub
from reside.jazz.server.values import Values
from reside.jazz.sync import socket

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest


class MemorySync:
    """A sync server.

    Attributes:
        url: its address, for nodes of this process (`install`).
    """

    url = "ws://memory"

    def __init__(self) -> None:
        self.hub = Hub(Values())

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let nodes that connect to `url` use this server, until the patch is undone."""
        other = socket.open_socket

        async def opened(url: str, *, on_frame: Callable[[str | None], None], **arguments: Any) -> Any:
            if url != self.url:
                return await other(url, on_frame=on_frame, **arguments)
            return Line(self.hub, on_frame)

        monkeypatch.setattr(socket, "open_socket", opened)


class Line:
    """A connection to the server, with the interface of `reside.jazz.sync.socket.Socket`."""

    is_full = False

    def __init__(self, hub: Hub, on_frame: Callable[[str | None], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._context = copy_context()
        self._hub = hub
        self._on_frame = on_frame
        self._there: deque[str] = deque()
        self._is_due = False
        self._peer = hub.connect(self._due)
        self.closed: asyncio.Future[str] = self._loop.create_future()

    @property
    def received_at(self) -> float:
        """The present time: the line is never silent."""
        return self._loop.time()

    def send(self, text: str) -> None:
        """Send a frame to the server, which receives it in a later turn."""
        if not self.closed.done():
            self._there.append(text)
            self._loop.call_soon(self._deliver, context=self._context)

    async def close(self) -> None:
        """End the connection."""
        if not self.closed.done():
            self.closed.set_result("closed")
            self._hub.disconnect(self._peer)

    def _deliver(self) -> None:
        if self.closed.done():
            return
        for message in self._there.popleft().split("\n"):
            if message:
                self._hub.receive(self._peer, message)

    def _due(self) -> None:
        if not self._is_due:
            self._is_due = True
            self._loop.call_soon(self._answer, context=self._context)  # and not that of the task that caused it

    def _answer(self) -> None:
        self._is_due = False
        messages = [] if self.closed.done() else list(self._hub.outgoing(self._peer))
        if messages:
            self._on_frame("\n".join(messages))
