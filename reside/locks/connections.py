"""Connections to the members of etcd over HTTP/1.1, for requests whose answer is read completely.

A lock takes four requests, and httpx2 needs four times as much CPU for one (`python -m benchmarks.grants`). What these
requests do not need is missing here: redirects, cookies, proxies, compression, streams. `exchange` has the protocol.

Invariant: a connection has one request at a time. After an error, a timeout or a cancellation it is closed, so no
request gets the answer of another one.
"""

from __future__ import annotations

import asyncio
import select
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import SplitResult, urlsplit

from reside.common.tls import trusted_authorities
from reside.locks.exchange import Answer, Exchange

if TYPE_CHECKING:
    import ssl

_IDLE_S: Final = 5.0
"""A connection that was not used for so long is not used again: the network may have forgotten it without a word."""
_MAX_CONNECTIONS: Final = 64


class Connections:
    """The connections of one client, kept open between requests."""

    def __init__(self) -> None:
        self._idle: dict[str, list[_Connection]] = {}
        self._all: set[_Connection] = set()
        self._free = asyncio.Semaphore(_MAX_CONNECTIONS)

    async def aclose(self) -> None:
        """Close all connections; requests in progress fail."""
        closed = [connection.closed for connection in self._all]
        for connection in self._all:
            connection.abort()
        await asyncio.gather(*closed)

    async def post(self, member: str, path: str, body: bytes, *, token: str | None, timeout: float) -> Answer:  # noqa: ASYNC109 - as httpx2
        """Send a JSON text and return the answer.

        Args:
            member: address of the member, e.g. `http://etcd:2379`.
            path: for example `/v3/kv/txn`.
            body: the JSON text.
            token: the token of a login; None: there is none.
            timeout: seconds for all of it.

        Raises:
            OSError: the member can't be reached, did not answer in time, or its answer is not HTTP.
        """
        async with asyncio.timeout(timeout), self._free:
            address = urlsplit(member)
            connection = self._take(member) or await self._open(address)
            try:
                answer = await connection.request(address, path, body, token)
            except BaseException:
                connection.abort()
                raise
        if answer.keeps:
            self._idle.setdefault(member, []).append(connection)
        else:
            connection.abort()
        return answer

    def _take(self, member: str) -> _Connection | None:
        """Return the connection that was used last; close those that have been idle for too long."""
        idle = self._idle.get(member, [])
        since = asyncio.get_running_loop().time() - _IDLE_S
        while idle and (idle[0].is_closed or idle[0].used_at < since):
            idle.pop(0).abort()
        while idle:
            connection = idle.pop()
            if connection.is_usable():
                return connection
            connection.abort()
        return None

    async def _open(self, address: SplitResult) -> _Connection:
        if address.hostname is None:
            raise ConnectionError("its address has no host: it looks like http://etcd:2379")
        tls: ssl.SSLContext | None = trusted_authorities() if address.scheme == "https" else None
        port = address.port or (80 if tls is None else 443)
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(_Connection, address.hostname, port, ssl=tls)
        self._all.add(connection)
        connection.closed.add_done_callback(lambda _: self._all.discard(connection))
        return connection


class _Connection(asyncio.Protocol):
    """One connection.

    Attributes:
        closed: done when the connection has ended.
        used_at: time of the last answer, on the event loop's clock.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._exchange = Exchange()
        self._answer: asyncio.Future[Answer] | None = None
        self.closed: asyncio.Future[None] = self._loop.create_future()
        self.used_at = self._loop.time()

    @property
    def is_closed(self) -> bool:
        """Whether no request can be sent any more."""
        return self.closed.done() or self._transport is None or self._transport.is_closing()

    def is_usable(self) -> bool:
        """Return whether a connection that is not in use is still open.

        The event loop may not have seen yet that the member has closed it; but it can be read then.
        """
        if self._transport is None or self.is_closed:
            return False
        readable = select.poll()
        readable.register(self._transport.get_extra_info("socket").fileno(), select.POLLIN)
        return not readable.poll(0)

    async def request(self, address: SplitResult, path: str, body: bytes, token: str | None) -> Answer:
        """Send a request and return the answer.

        Raises:
            ConnectionError: the connection ended before the answer, the answer is not HTTP, or the token is malformed.
        """
        if self._transport is None or self.is_closed:
            raise ConnectionError("the connection has ended")
        text = self._exchange.ask(address, path, body, token)
        self._answer = self._loop.create_future()
        self._transport.write(text)
        try:
            return await self._answer
        finally:
            self._answer, self.used_at = None, self._loop.time()

    def abort(self) -> None:
        """Close the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    # Methods that the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's transport is not a subclass

    def data_received(self, data: bytes) -> None:
        """Read the answer, as far as it has arrived; nobody has asked for anything else."""
        if self._answer is None or self._answer.done():
            self.abort()
            return
        try:
            answer = self._exchange.receive(data)
        except ConnectionError as error:
            self._answer.set_exception(error)
        else:
            if answer is not None:
                self._answer.set_result(answer)

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail the request in progress."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionError(f"the connection ended: {exc or 'it was closed'}"))
        self.closed.set_result(None)
