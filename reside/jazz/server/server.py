"""The sync server: WebSocket connections around the state machine of `reside.jazz.server.hub`."""

from pathlib import Path
from types import TracebackType
from typing import Final, Self

from websockets.asyncio.server import Server, ServerConnection, serve

from reside.jazz.disk.database import SqliteStore
from reside.jazz.server.connection import Connection
from reside.jazz.server.hub import Hub
from reside.jazz.server.values import Values

_CLOSE_TIMEOUT_S: Final = 2.0
_MAX_FRAME_BYTES: Final = 64 * 1024 * 1024
"""A larger message ends its connection."""


class SyncServer:
    """A sync server for tests and development: `async with SyncServer() as server: Node(server.url, …)`.

    It verifies ids and signatures, stores, and relays. It checks no roles and limits no storage: anyone who reaches it
    can store any number of values, and read any value by its id. Clients validate what they read. In production, use
    the server of ReSide's `images/jazz` or another one on the official packages.

    Args:
        host: the address to listen on.
        port: the port; 0 takes any free one, which `url` contains.
        store: a database file, which keeps the values over restarts. Without one they are lost with the server.
    """

    def __init__(
        self, host: str = "127.0.0.1", port: int = 0, *, store: SqliteStore | str | Path | None = None
    ) -> None:
        self._host = host
        self._port = port
        self._values = Values(store if isinstance(store, SqliteStore | None) else SqliteStore(store))
        self._hub = Hub(self._values)
        self._server: Server | None = None

    @property
    def url(self) -> str:
        """The address for clients, `ws://host:port`."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"ws://{host}:{self._port}"

    async def __aenter__(self) -> Self:
        """Listen.

        Raises:
            OSError: the address can't be listened on, for example because the port is in use.
            StoreFailed: the database file can't be used.
        """
        self._values.open()
        try:
            self._server = await serve(
                self._serve,
                self._host,
                self._port,
                compression=None,
                max_size=_MAX_FRAME_BYTES,
                max_queue=1,
                close_timeout=_CLOSE_TIMEOUT_S,
            )
        except BaseException:
            self._values.close()
            raise
        self._port = next(iter(self._server.sockets)).getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close all connections and the database file.

        Raises:
            StoreFailed: the database file can't be written.
        """
        server, self._server = self._server, None
        try:
            if server is not None:
                server.close()
                await server.wait_closed()
        finally:
            self._values.close()

    async def _serve(self, socket: ServerConnection) -> None:
        await Connection(socket, self._hub, self._values).run()
