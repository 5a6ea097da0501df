"""The parts of a process that a test can cut at a point: its node, its locks, and the connection to etcd."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import httpx2
from support.life_points import FLUSH

from reside.common.tls import trusted_authorities
from reside.jazz import Node
from reside.locks import LockService
from reside.locks.connections import Connections

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.life_points import Points

    from reside.jazz.memory.covalue import Core
    from reside.jazz.sync.known_state import KnownState
    from reside.locks import Held

T = TypeVar("T")


class Network(httpx2.AsyncBaseTransport):
    """The network to etcd, by the connections that processes use; watches are streams, and use httpx2."""

    def __init__(self) -> None:
        self._connections = Connections()
        self._streams = httpx2.AsyncHTTPTransport(verify=trusted_authorities())

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request."""
        if request.url.path == "/v3/watch":
            return await self._streams.handle_async_request(request)
        token, within_s = request.headers.get("authorization"), request.extensions["timeout"]["read"]
        member = f"{request.url.scheme}://{request.url.netloc.decode()}"
        answer = await self._connections.post(member, request.url.path, request.content, token=token, timeout=within_s)
        return httpx2.Response(answer.status, content=answer.text.encode())

    async def aclose(self) -> None:
        """Close the connections."""
        await self._connections.aclose()
        await self._streams.aclose()


class Wire(httpx2.AsyncBaseTransport):
    """The connection to etcd, which can be cut."""

    def __init__(self, network: httpx2.AsyncBaseTransport) -> None:
        self._network = network
        self.is_cut = False
        self.is_free = asyncio.Event()
        self.is_free.set()
        self.points: Points | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Pass a request on unless the wire is cut."""
        points = self.points
        if points is not None and not points.is_dead and _is_point(request, points):
            await points.reach(f"request {request.url.path}")
        if self.is_cut:
            raise httpx2.ConnectError("the process is dead")
        await self.is_free.wait()
        return await self._network.handle_async_request(request)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._network.aclose()


class RecordingLocks(LockService):
    """Locks that remember which were taken."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.taken: list[Held] = []

    async def _acquire(self, key: str, ttl: int, wait: float | None) -> Held:
        held = await super()._acquire(key, ttl, wait)
        self.taken.append(held)
        return held


class Gate:
    """Holds back the content that a node sends: a write reaches the server only when the node waits for it."""

    def __init__(self, node: Node) -> None:
        self._sync = node._runtime._servers.connections[0].sync
        self._send = self._sync._send_delta
        self._sync._send_delta = self._hold  # type: ignore[method-assign]
        self._held: dict[str, Core] = {}
        self.is_closed = False

    def open(self) -> None:
        """Send what was held back, and hold back nothing from now on."""
        self.is_closed = False
        held, self._held = self._held, {}
        for core in held.values():
            self._sync.push(core)

    def drop(self) -> None:
        """Lose what was held back."""
        self._held.clear()

    def _hold(self, core: Core, known: KnownState) -> bool:
        if not self.is_closed:
            return self._send(core, known)
        self._held[core.co_id] = core
        return False


class MortalNode(Node):
    """A node whose writes a life counts."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.gate = Gate(self)
        self.points: Points | None = None
        writer = self._host.writer
        for name in ("create", "_append"):
            setattr(writer, name, partial(self._counted, getattr(writer, name)))

    def _counted(self, write: Callable[..., T], *arguments: Any, **options: Any) -> T:
        if self.points is not None and not self.points.pauses:
            self.points.pass_by("write")
        return write(*arguments, **options)

    async def flush(self, *, timeout: float = 30.0) -> None:  # noqa: ASYNC109 - as Node.flush
        """Wait until the server acknowledged everything written; a life may die before anything is sent."""
        if self.points is None:
            return await super().flush(timeout=timeout)
        await self.points.reach(FLUSH)
        self.gate.open()
        await super().flush(timeout=timeout)
        self.gate.is_closed = self.points is not None
        return None


def _is_point(request: httpx2.Request, points: Points) -> bool:
    """Return whether a request to etcd is a point: those that take or release a lock are, others change nothing."""
    changes = request.url.path == "/v3/lease/revoke" or b"requestPut" in request.content
    return points.every or (changes and not points.pauses)
