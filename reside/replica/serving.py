"""The HTTP server of a replica: uvicorn in the current event loop, without its signal handlers."""

from __future__ import annotations

import asyncio
import socket
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

import uvicorn

from reside.model.errors import InvalidInput, NotReady

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from starlette.types import ASGIApp

_GRACE_S = 20
"""Seconds for calls in progress to end when the server stops."""


class _Server(uvicorn.Server):
    """Leaves signals to the process: in the seed the server runs in a thread, and the process belongs to Pulumi."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set()


def bind(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 takes any free port.

    Its connections send at once: uvicorn writes head and body of a response separately, and the body would wait for the
    acknowledgement of the head, for 40 ms. asyncio sets the option only for sockets that it has created itself.

    Raises:
        InvalidInput: the address can't be listened on.
    """
    try:
        listener = socket.create_server((host, port), backlog=128)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except OSError as error:
        raise InvalidInput(
            f"can't listen on {host}:{port}: {error.strerror}; set RESIDE_LISTEN_HOST and RESIDE_LISTEN_PORT"
        ) from error
    return listener


@asynccontextmanager
async def serving(app: ASGIApp, listener: socket.socket) -> AsyncIterator[None]:
    """Serve `app` while the block is open; then refuse new connections and let calls in progress end."""
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        proxy_headers=False,  # a caller is known by its token, never by its address
        timeout_graceful_shutdown=_GRACE_S,
    )
    server = _Server(config)
    task = asyncio.create_task(server.serve(sockets=[listener]), name="http")
    up = asyncio.create_task(server.listening.wait())
    try:
        await asyncio.wait({task, up}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            raise NotReady("the HTTP server ended before it took connections") from task.exception()
        yield
    finally:
        up.cancel()
        server.should_exit = True
        await task
        listener.close()
