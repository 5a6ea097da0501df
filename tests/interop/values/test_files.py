"""Files written by one side can be read by the other, complete or while they grow."""

import asyncio
import base64
import hashlib
import random
from collections.abc import AsyncIterator

import pytest
from interop.javascript import JavaScript
from support.jazz_nodes import Nodes
from support.jazz_server import JazzServer

from reside.jazz import AccountId, FileInfo, InvalidContent, Node, WrongKind

pytestmark = pytest.mark.anyio

INFO = {"mimeType": "image/png", "fileName": "ä.png", "totalSizeBytes": 250_000}
DATA = random.Random(1).randbytes(250_000)  # noqa: S311 - only some bytes


async def _both(jazz: JazzServer, js: JavaScript, nodes: Nodes) -> tuple[Node, str]:
    """Return a node, and a group of it in which the JavaScript actor `js` may write."""
    python = await nodes("python")
    other = await js("create", actor="js", url=jazz.url, name="js")
    await js("flush", actor="js")
    group = python.create_group()
    await group.add_member(AccountId(other["accountID"]), "writer")
    await python.flush()
    return python, group.id


async def test_a_file_of_python_is_read_in_javascript(jazz: JazzServer, js: JavaScript, nodes: Nodes) -> None:
    python, group = await _both(jazz, js, nodes)
    file = (await python.load_group(group)).create_file(DATA, mime_type="image/png", name="ä.png")
    await python.flush()
    await js("untilFinished", actor="js", id=file.id)
    info, data, finished = await js("load", actor="js", id=file.id)
    assert (info, finished) == (INFO, True)
    assert base64.b64decode(data) == DATA


async def test_a_file_of_javascript_is_read_in_python(jazz: JazzServer, js: JavaScript, nodes: Nodes) -> None:
    python, group = await _both(jazz, js, nodes)
    made = await js("startFile", actor="js", group=group, info=INFO)
    chunks = [base64.b64encode(DATA[begin : begin + 102_400]).decode() for begin in range(0, len(DATA), 102_400)]
    await js("pushChunks", actor="js", id=made, chunks=chunks, end=True)
    await js("flush", actor="js")
    file = await python.load_file(made, max_bytes=250_000)
    assert file.info == FileInfo("image/png", "ä.png", 250_000)
    assert file.read() == DATA
    assert [len(chunk) async for chunk in file.chunks()] == [102_400, 102_400, 45_200]
    with pytest.raises(WrongKind, match="is a file, not a feed"):
        await python.load_feed(made)
    with pytest.raises(InvalidContent, match="more than the limit of 249999"):
        await python.load_file(made, max_bytes=249_999)


async def test_a_file_is_read_while_javascript_writes_it(jazz: JazzServer, js: JavaScript, nodes: Nodes) -> None:
    python, group = await _both(jazz, js, nodes)
    made = await js("startFile", actor="js", group=group, info={"mimeType": "text/plain"})
    await js("flush", actor="js")
    file = await python.open_file(made)
    loading = asyncio.create_task(python.load_file(made))
    parts = file.chunks()
    for number in range(3):
        await js("pushChunks", actor="js", id=made, chunks=[base64.b64encode(b"part %d" % number).decode()])
        assert await anext(parts) == b"part %d" % number
    assert not loading.done()
    await js("pushChunks", actor="js", id=made, chunks=[], end=True)
    assert [part async for part in parts] == []
    assert (await loading).read() == b"part 0part 1part 2"


async def test_a_large_source_is_uploaded_in_chunks(jazz: JazzServer, js: JavaScript, nodes: Nodes) -> None:
    python, group = await _both(jazz, js, nodes)
    pieces = [random.Random(seed).randbytes(70_000) for seed in range(100)]  # noqa: S311 - only some bytes

    async def source() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    file = (await python.load_group(group)).open_file("x/y", size=7_000_000)
    await file.push_all(source())
    await python.flush()
    expected = hashlib.sha256(b"".join(pieces)).hexdigest()
    reader = await nodes("reader")
    await (await python.load_group(group)).add_member(AccountId(reader.account_id), "reader")
    await python.flush()
    theirs = await reader.open_file(file.id)
    received = hashlib.sha256()
    async for chunk in theirs.chunks():
        received.update(chunk)
    assert received.hexdigest() == expected
    assert (await reader.load_file(file.id)).received == 7_000_000
    await js("untilFinished", actor="js", id=file.id)
    _, data, _ = await js("load", actor="js", id=file.id)
    assert hashlib.sha256(base64.b64decode(data)).hexdigest() == expected


async def test_jazz_tools_reads_and_writes_files(jazz: JazzServer, tools: JavaScript, nodes: Nodes) -> None:
    python = await nodes("python")
    group = python.create_group()
    await group.add_member("everyone", "writer")
    file = group.create_file(DATA, mime_type="image/png", name="ä.png")
    await python.flush()
    await tools("login", actor="tools", url=jazz.url, **await tools("create", url=jazz.url, name="tools"))
    read = await tools("readFile", actor="tools", id=file.id)
    assert (read["type"], base64.b64decode(read["data"])) == ("image/png", DATA)
    data = base64.b64encode(DATA).decode()
    made = await tools("createFile", actor="tools", owner=group.id, type="a/b", data=data, name="n")
    await tools("flush", actor="tools")
    theirs = await python.load_file(made)
    assert theirs.info == FileInfo("a/b", "n", len(DATA))
    assert theirs.read() == DATA
