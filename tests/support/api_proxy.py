"""A reverse proxy of an API server that shows each request to a test, before it is forwarded and after its answer.

Clients reach it without TLS and without credentials on loopback, through a kubeconfig that it writes. Watches are
forwarded and not shown.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
import tempfile
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from urllib.parse import parse_qs, urlsplit

import h11
import yaml

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from reside.local import ClusterInfo

Side: TypeAlias = Literal["before", "after"]
"""Before a request is forwarded, or after its answer has arrived, which the client does not have yet."""
_SIZE = 65536


class CutError(Exception):
    """Closes the connection to the client without an answer."""


@dataclass(frozen=True)
class Request:
    """One request of a client to the resources of a namespace."""

    method: str
    resource: str

    def __str__(self) -> str:
        return f"{self.method} {self.resource}"


@dataclass
class ApiProxy:
    """One proxy.

    Attributes:
        kubeconfig: the path of a kubeconfig for clients.
        seen: called with each request to the resources of the namespace; raises `CutError` to close its connection.
        refuse: whether all connections are closed, as if the API server were gone.
    """

    kubeconfig: Path
    namespace: str
    upstream: str
    context: ssl.SSLContext
    seen: Callable[[Request, Side], None] = lambda _request, _side: None
    refuse: bool = False

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection of a client until one of both sides closes it."""
        parts = urlsplit(self.upstream)
        with suppress(OSError, h11.ProtocolError, asyncio.IncompleteReadError, CutError):
            above = await asyncio.open_connection(parts.hostname, parts.port, ssl=self.context)
            try:
                await self._relay(_Side(h11.SERVER, reader, writer), _Side(h11.CLIENT, *above))
            finally:
                above[1].close()
        writer.transport.abort()

    async def _relay(self, client: _Side, server: _Side) -> None:
        while True:
            head = await client.next()
            if not isinstance(head, h11.Request):
                return
            request = self._request(head)
            body = await client.body()
            self._show(request, "before")
            await server.send(head, *body, h11.EndOfMessage())
            answer = await server.next()
            while isinstance(answer, h11.InformationalResponse):
                answer = await server.next()
            if request is None:
                await client.send(answer)
                while isinstance(event := await server.next(), h11.Data):
                    await client.send(h11.Data(event.data))
                await client.send(h11.EndOfMessage())
            else:
                content = await server.body()
                self._show(request, "after")
                await client.send(answer, *content, h11.EndOfMessage())
            if h11.MUST_CLOSE in (client.state, server.state):
                return
            client.start_next()
            server.start_next()

    def _show(self, request: Request | None, side: Side) -> None:
        if self.refuse:
            raise CutError
        if request is not None:
            self.seen(request, side)

    def _request(self, head: h11.Request) -> Request | None:
        """Return what a test sees of a request; None if it is of no interest, such as a watch."""
        target = urlsplit(head.target.decode())
        _, found, resource = target.path.partition(f"/namespaces/{self.namespace}/")
        watch = parse_qs(target.query).get("watch", ["0"])[0] in ("1", "true")
        return None if not found or watch or resource.startswith("events") else Request(head.method.decode(), resource)


class _Side:
    """One side of a relayed connection."""

    def __init__(self, role: Any, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connection = h11.Connection(role, max_incomplete_event_size=1 << 20)
        self._reader, self._writer = reader, writer
        self.start_next = self._connection.start_next_cycle

    @property
    def state(self) -> Any:
        return self._connection.our_state

    async def next(self) -> Any:
        while (event := self._connection.next_event()) is h11.NEED_DATA:
            self._connection.receive_data(await self._reader.read(_SIZE))
        return event

    async def body(self) -> list[h11.Data]:
        found = []
        while isinstance(event := await self.next(), h11.Data):
            found.append(h11.Data(event.data))
        return found

    async def send(self, *events: Any) -> None:
        for event in events:
            self._writer.write(self._connection.send(event) or b"")
        await self._writer.drain()


def _tls(user: dict[str, str], cluster: dict[str, str]) -> ssl.SSLContext:
    """Return a context with the credentials of a kubeconfig, which it has as files or as text in base64."""

    def content(source: dict[str, str], name: str) -> bytes:
        return Path(source[name]).read_bytes() if name in source else base64.b64decode(source[f"{name}-data"])

    context = ssl.create_default_context(cadata=content(cluster, "certificate-authority").decode())
    with tempfile.NamedTemporaryFile() as both:
        both.write(content(user, "client-certificate") + b"\n" + content(user, "client-key"))
        both.flush()
        context.load_cert_chain(both.name)
    return context


@asynccontextmanager
async def api_proxy(info: ClusterInfo, namespace: str, folder: Path) -> AsyncIterator[ApiProxy]:
    """Run a proxy of the cluster's API server while the block is open."""
    config = yaml.safe_load(info.kubeconfig.read_text())
    chosen = next(each["context"] for each in config["contexts"] if each["name"] == info.context)
    cluster = next(each["cluster"] for each in config["clusters"] if each["name"] == chosen["cluster"])
    user = next(each["user"] for each in config["users"] if each["name"] == chosen["user"])
    proxy = ApiProxy(folder / "proxied.kubeconfig", namespace, cluster["server"], _tls(user, cluster))
    tasks: set[asyncio.Task[None]] = set()
    server = await asyncio.start_server(
        lambda reader, writer: tasks.add(asyncio.create_task(proxy.serve(reader, writer))), "127.0.0.1", 0
    )
    address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    proxied = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "proxied", "cluster": {"server": address}}],
        "users": [{"name": "proxied", "user": {}}],
        "contexts": [{"name": info.context, "context": {"cluster": "proxied", "user": "proxied"}}],
        "current-context": info.context,
    }
    proxy.kubeconfig.write_text(yaml.safe_dump(proxied))
    try:
        yield proxy
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
