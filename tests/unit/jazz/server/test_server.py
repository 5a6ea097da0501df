"""The server in process, over real sockets: it needs no Node."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from support.jazz_nodes import Nodes, content, until
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from reside.jazz import JazzTimeout, SqliteStore, StoreFailed, ValueDeleted
from reside.jazz.server import SyncServer, connection
from reside.jazz.server.peer import Peer
from reside.jazz.server.values import Values

pytestmark = pytest.mark.anyio


async def test_nodes_exchange_values_through_it() -> None:
    async with SyncServer() as server, Nodes(server.url) as nodes:
        writer, reader = await nodes("writer"), await nodes("reader")
        group = writer.create_group()
        await group.add_member(reader.account_id, "writer")
        mine = group.create_map({"x": 1})
        await writer.flush()
        theirs = await reader.load_map(mine.id)
        theirs.set("y", 2)
        await until(mine, {"x": 1, "y": 2})


async def test_values_outlive_the_server_in_its_file(tmp_path: Path) -> None:
    async with SyncServer(store=tmp_path / "jazz.sqlite") as server, Nodes(server.url) as nodes:
        writer = await nodes("writer")
        group = writer.create_group()
        await group.add_member("everyone", "reader")
        value, gone = group.create_map({"x": 1}), group.create_map({"x": 2})
        await writer.flush()
        gone.destroy()
        await writer.flush()
    async with SyncServer(store=SqliteStore(tmp_path / "jazz.sqlite")) as server, Nodes(server.url) as nodes:
        reader = await nodes("reader")
        assert content(await reader.load_map(value.id)) == {"x": 1}
        with pytest.raises(ValueDeleted):
            await reader.load_map(gone.id)


async def test_a_file_of_a_node_is_refused(tmp_path: Path) -> None:
    async with SyncServer() as server, Nodes(server.url) as nodes:
        await nodes("writer", store=SqliteStore(tmp_path / "node.sqlite"))
    with pytest.raises(StoreFailed, match="it belongs to the account co_z"):
        async with SyncServer(store=tmp_path / "node.sqlite"):
            pass


async def test_a_port_in_use_is_an_error() -> None:
    async with SyncServer() as server:
        with pytest.raises(OSError, match="in use"):
            async with SyncServer(port=int(server.url.rpartition(":")[2])):
                pass


async def test_what_cannot_be_stored_is_not_acknowledged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection ends, and the client sends it again on the next one."""
    async with SyncServer(store=tmp_path / "jazz.sqlite") as server, Nodes(server.url) as nodes:
        node = await nodes("writer")
        value = node.create_group().create_map({"x": 1})
        await node.flush()
        with monkeypatch.context() as patched:
            patched.setattr(Values, "save", _fail)
            value.set("x", 2)
            with pytest.raises(JazzTimeout):
                await node.flush(timeout=0.3)
        await node.flush()


def _fail(_: Values) -> None:
    raise StoreFailed(Path("jazz.sqlite"), "the disk is full")


async def test_an_idle_connection_gets_pings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_PING_S", 0.01)
    async with SyncServer() as server, connect(server.url) as socket:
        assert json.loads(await socket.recv())["type"] == "ping"


async def test_a_connection_over_its_bound_is_closed_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Peer, "_count", lambda self, _: setattr(self, "refusal", "too much"))
    async with SyncServer() as server, connect(server.url) as socket, connect(server.url) as other:
        message = {"action": "load", "id": "co_zPfEHWFVK3AzWcsjBoGXmjTEAnLp", "header": False, "sessions": {}}
        await socket.send(json.dumps(message))
        with pytest.raises(ConnectionClosed, match="too much"):
            await asyncio.wait_for(_drain(socket), 60)
        await other.ping()


async def _drain(socket: ClientConnection) -> None:
    while True:
        await socket.recv()


async def test_a_client_that_does_not_read_gets_all_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """While more is queued for it than the bound, no more of its messages are processed, and none is lost."""
    monkeypatch.setattr("reside.jazz.server.peer.MAX_QUEUED", 3)
    ids = [f"co_z{'1' * (number + 1)}" for number in range(50)]
    loads = [json.dumps({"action": "load", "id": co_id, "header": False, "sessions": {}}) for co_id in ids]
    async with SyncServer() as server, connect(server.url) as socket:
        await socket.send("\n".join(loads))
        answers = [json.loads(await socket.recv())["id"] for _ in ids]
    assert answers == ids
