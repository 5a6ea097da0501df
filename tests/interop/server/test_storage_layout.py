"""The file of images/jazz: its tables take less space than those of cojson, and both servers can use both kinds."""

import json
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
from support.eventually import eventually
from support.jazz_history import History
from support.jazz_nodes import Nodes, content
from support.jazz_server import JazzServer, jazz_server, node_binary

pytestmark = pytest.mark.anyio

_SCRIPT = Path(__file__).parent / "official_storage.mjs"


def _official(server: JazzServer, *arguments: str) -> str:
    """Run `official_storage.mjs` with the packages of a server."""
    script = server.folder / _SCRIPT.name
    shutil.copy(_SCRIPT, script)
    done = subprocess.run([node_binary(), script, *arguments], capture_output=True, text=True, check=True)
    return done.stdout


def _indexes(file: Path) -> set[str]:
    with closing(sqlite3.connect(file)) as connection:
        return {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'index'")}


def _page_bytes(file: Path) -> int:
    with closing(sqlite3.connect(file)) as connection:
        return int(connection.execute("PRAGMA page_size").fetchone()[0])


def _sessions(file: Path, co_id: str) -> set[str]:
    return {stored.session for stored in History(file).transactions if stored.value == co_id}


def _replace_files(folder: Path) -> None:
    for old in folder.glob("jazz.sqlite*"):
        old.unlink()
    for made in folder.glob("official.sqlite*"):
        made.rename(folder / made.name.replace("official", "jazz"))


async def test_a_new_file_has_no_index_that_repeats_another_and_none_of_headers(tmp_path: Path) -> None:
    with jazz_server(tmp_path) as server:
        server.stop()
        file = tmp_path / "jazz.sqlite"
        for _ in ("new", "opened again"):
            found = _indexes(file)
            assert {"sqlite_autoindex_coValues_1", "sqlite_autoindex_sessions_1"} <= found
            assert not found & {"coValuesByID", "sqlite_autoindex_coValues_2", "sessionsByCoValue"}
            assert _page_bytes(file) == 8192
            server.start()
            server.stop()


async def test_the_official_storage_reads_and_extends_a_file_of_this_server(tmp_path: Path) -> None:
    with jazz_server(tmp_path) as server:
        async with Nodes(server.url) as nodes:
            writer = await nodes("writer")
            value = writer.create_group().create_map({"x": 1})
            value.set("y", 2)
            await writer.flush()
            server.stop()
            file = str(tmp_path / "jazz.sqlite")
            assert json.loads(_official(server, "count", file, value.id)) == {value.id: 2}
            value.set("z", 3)
            server.start()
            await writer.flush()
            server.stop()
            assert json.loads(_official(server, "count", file, value.id)) == {value.id: 3}


async def test_a_file_with_the_tables_of_cojson_is_used_as_it_is(tmp_path: Path) -> None:
    """As a server of an earlier release has left it; values in it can be read, extended, deleted and erased."""
    with jazz_server(tmp_path, ERASE_S="1") as server:
        async with Nodes(server.url) as nodes:
            writer = await nodes("writer")
            group = writer.create_group()
            await group.add_member("everyone", "reader")
            kept, deleted = group.create_map({"x": 1}), group.create_map({"secret": "of a deleted value"})
            await writer.flush()
            server.stop()
            file = tmp_path / "jazz.sqlite"
            ids = [writer.account_id, group.id, kept.id, deleted.id]
            _official(server, "copy", str(file), str(tmp_path / "official.sqlite"), *ids)
            _replace_files(tmp_path)
            assert "sqlite_autoindex_coValues_2" in _indexes(file)

            server.start()
            reader = await nodes("reader")
            found = await reader.load_map(kept.id)
            kept.set("x", 2)
            deleted.destroy()
            await writer.flush()
            await reader.catch_up()
            assert content(found) == {"x": 2}
            await eventually("the erasure", lambda: len(_sessions(file, deleted.id)) == 1)
            server.stop()
            assert not _indexes(file) & {"coValuesByID"}
            assert "sessionsByCoValue" in _indexes(file)


async def test_what_is_erased_leaves_no_half_empty_pages(tmp_path: Path) -> None:
    """The transactions beside it are written again, unchanged. Otherwise more pages would be in use than before."""
    with jazz_server(tmp_path, ERASE_S="1") as server:
        file = tmp_path / "jazz.sqlite"
        async with Nodes(server.url) as nodes:
            writer = await nodes("writer")
            group = writer.create_group()
            await group.add_member("everyone", "reader")
            kept, deleted = [], []
            for number in range(100):
                kept.append(group.create_map({"x": f"{number} " + "k" * 300}))
                deleted.append(group.create_map({"x": "d" * 600}))
                kept[-1].set("y", number)
            await writer.flush()
            await eventually("all transactions", lambda: len(History(file).transactions) > 300)
            before = {stored for stored in History(file).transactions if stored.value in {value.id for value in kept}}
            size = _used_pages(file)
            for value in deleted:
                value.destroy()
            await writer.flush()
            await eventually("the erasure", lambda: all(len(_sessions(file, value.id)) == 1 for value in deleted[-1:]))
            await eventually("fewer pages", lambda: _used_pages(file) < 0.9 * size)
            server.stop()
            assert before <= set(History(file).transactions)
            server.start()
            reader = await nodes("reader")
            for number, value in enumerate(kept):
                assert content(await reader.load_map(value.id)) == {"x": f"{number} " + "k" * 300, "y": number}


def test_what_there_is_no_time_for_is_written_again_later() -> None:
    """A clock that passes 60 ms at each look leaves time for one erased session of three."""
    module = Path(__file__).parents[3] / "images" / "jazz" / "compaction.mjs"
    program = f"""
        const {{ compact }} = await import("{module.as_uri()}");
        let now = 0, left = [5, 7, 9];
        Date.now = () => (now += 60);
        const done = [];
        const query = (_, [session]) => (done.push(session), []);
        const database = {{ get: () => undefined, query, transaction: (act) => act() }};
        const rest = [];
        while (left.length > 0) rest.push((left = compact(database, left)));
        console.log(JSON.stringify([rest, [...new Set(done)]]));
    """
    command = [node_binary(), "--input-type=module", "--eval", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert json.loads(done.stdout) == [[[7, 9], [9], []], [5, 7, 9]]


async def test_an_erasure_of_many_values_does_not_wait_for_the_next_one(tmp_path: Path) -> None:
    """It is done in parts. A server that does one part in each period erases ever later, and its file grows."""
    with jazz_server(tmp_path, ERASE_S="20") as server:
        file = tmp_path / "jazz.sqlite"
        async with Nodes(server.url) as nodes:
            writer = await nodes("writer")
            group = writer.create_group()
            values = [group.create_map({"x": "d" * 2000}) for _ in range(150)]
            for value in values:
                for number in range(5):
                    value.set("y", number)
            await writer.flush()
            for value in values:
                value.destroy()
            await writer.flush()
            await eventually("the begin of the erasure", lambda: _erased(file) > 0, within=90)
            await eventually("its end", lambda: _erased(file), lambda count: count == len(values), within=18)


def _erased(file: Path) -> int:
    """Return how many deleted values are erased."""
    with closing(sqlite3.connect(file)) as connection:
        (count,) = connection.execute("SELECT count(*) FROM deletedCoValues WHERE status = 1").fetchone()
    return int(count)


def _used_pages(file: Path) -> int:
    with closing(sqlite3.connect(file)) as connection:
        pages, free = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count"))
    return int(pages) - int(free)
