"""The stock server, jazz-run 0.15.10: what works with the server of our image works with it, too.

The imported tests run a second time, against the server of this file.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from interop.groups.test_permissions import (
    test_a_forbidden_write_of_javascript_is_relayed_but_not_shown,
    test_a_removed_member_cannot_read_what_is_written_afterwards,
    test_roles_are_inherited_from_a_parent_group_created_by_javascript,
)
from interop.proxy import proxy
from interop.server.stock_server import StockServer, stock_server
from interop.sync.test_concurrent_writers import (
    test_concurrent_map_writes_converge_on_the_latest,
    test_many_values_are_written_and_loaded_at_once,
)
from interop.sync.test_cut_connections import (
    guest,
    test_a_slow_connection_loses_nothing,
    test_nothing_is_lost_when_many_connections_in_a_row_close,
)
from interop.values.test_value_exchange import (
    test_both_compute_the_same_unique_map,
    test_javascript_logs_in_with_an_account_made_in_python,
    test_javascript_reads_what_python_wrote_and_writes_back,
    test_python_logs_in_with_an_account_made_in_javascript,
    test_python_reads_what_javascript_wrote_and_writes_back,
)
from support.jazz_nodes import Nodes, content

from reside.jazz import Credentials, Node, SqliteStore, ValueNotFound

pytestmark = pytest.mark.anyio
__all__ = [
    "guest",
    "test_a_forbidden_write_of_javascript_is_relayed_but_not_shown",
    "test_a_removed_member_cannot_read_what_is_written_afterwards",
    "test_a_slow_connection_loses_nothing",
    "test_both_compute_the_same_unique_map",
    "test_concurrent_map_writes_converge_on_the_latest",
    "test_javascript_logs_in_with_an_account_made_in_python",
    "test_javascript_reads_what_python_wrote_and_writes_back",
    "test_many_values_are_written_and_loaded_at_once",
    "test_nothing_is_lost_when_many_connections_in_a_row_close",
    "test_python_logs_in_with_an_account_made_in_javascript",
    "test_python_reads_what_javascript_wrote_and_writes_back",
    "test_roles_are_inherited_from_a_parent_group_created_by_javascript",
]


@pytest.fixture(scope="module")
def jazz() -> Iterator[StockServer]:
    """Yield a running stock server instead of the server of our image."""
    with stock_server() as server:
        yield server


async def test_simultaneous_connections_do_not_replace_each_other(jazz: StockServer) -> None:
    """The server identifies connections by address and millisecond; each of our nodes sends an address of its own."""
    nodes = [Node(jazz.url, Credentials.generate()) for _ in range(20)]
    await asyncio.gather(*(node.__aenter__() for node in nodes))
    try:
        await asyncio.gather(*(node.register(f"node {number}") for number, node in enumerate(nodes)))
        assert all(node.connected for node in nodes)
    finally:
        await asyncio.gather(*(node.close() for node in nodes))


async def test_a_missing_value_is_an_error_with_the_stock_server(jazz: StockServer) -> None:
    async with Node(jazz.url, Credentials.generate()) as node:
        await node.register("someone")
        with pytest.raises(ValueNotFound, match="the sync server does not have it"):
            await node.load("co_zPfEHWFVK3AzWcsjBoGXmjTEAnLp")


async def test_a_value_larger_than_a_message_is_loaded_completely(nodes: Nodes) -> None:
    """It arrives in several parts; the first of them is not the whole value."""
    writer, reader = await nodes("writer"), await nodes("reader")
    group = writer.create_group()
    await group.add_member(reader.account_id, "reader")
    value = group.create_map({})
    for number in range(300):
        value.set(str(number), "x" * 2_000)
        await writer.drain()
    await value.uploaded()
    assert len(await reader.load_map(value.id)) == 300


async def test_a_restart_with_a_store_transfers_only_the_difference(jazz: StockServer, tmp_path: Path) -> None:
    credentials = Credentials.generate()
    async with Node(jazz.url, credentials, store=SqliteStore(tmp_path / "store")) as node:
        await node.register("keeper")
        value = node.create_group().create_map({})
        for number in range(100):
            value.set("at", number)
        await node.flush()
    async with proxy(jazz.url) as line, Node(line.url, credentials, store=SqliteStore(tmp_path / "store")) as node:
        await node.login()
        kept = await node.load_map(value.id)
        assert content(kept) == {"at": 99}
        kept.set("at", 100)
        await node.flush()
        assert (line.transactions("up"), line.transactions("down")) == (1, 0)
