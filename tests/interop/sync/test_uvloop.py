"""The client on uvloop, whose transports are no subclasses of asyncio's."""

from pathlib import Path

import pytest
from support.jazz_nodes import Nodes, content, until
from support.jazz_server import jazz_server

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize("anyio_backend", [("asyncio", {"use_uvloop": True})], ids=["uvloop"]),
]


async def test_values_are_shared_and_a_lost_connection_is_replaced(tmp_path: Path) -> None:
    with jazz_server(tmp_path) as server:
        async with Nodes(server.url) as nodes:
            writer, reader = await nodes("writer"), await nodes("reader")
            group = writer.create_group()
            await group.add_member(reader.account_id, "reader")
            mine = group.create_list(["before"])
            await writer.flush()
            theirs = await reader.load_list(mine.id)
            assert content(theirs) == ["before"]
            server.kill()
            mine.append("while it is away")
            server.start()
            await writer.flush()
            await until(theirs, ["before", "while it is away"])


async def test_messages_larger_than_the_socket_buffer_arrive(nodes: Nodes) -> None:
    writer, reader = await nodes("writer"), await nodes("reader")
    group = writer.create_group()
    await group.add_member(reader.account_id, "reader")
    data = bytes(range(256)) * 8_000
    file = group.create_file(data)
    await writer.flush()
    assert (await reader.load_file(file.id)).read() == data
