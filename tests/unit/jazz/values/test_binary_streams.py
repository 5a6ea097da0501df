"""Files: how their parts are joined, in which order, and what is not a file."""

import asyncio
import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.jazz_controlled_nodes import DetachedNode, exchange, exchange_during, registered
from unit.jazz.logs import Log

from reside.jazz import FileInfo, FileStream, Group, InvalidContent, InvalidState, JazzTimeout, NodeClosed, ValueDeleted
from reside.jazz.values.streamview import StreamView
from reside.jazz.wire.encoding import b64encode
from reside.jazz.wire.header import owned_header

pytestmark = pytest.mark.anyio

A, B = "co_zA", "co_zB"
START = {"type": "start", "mimeType": "text/plain", "fileName": "a.txt", "totalSizeBytes": 4}
END = {"type": "end"}


def _chunk(data: bytes) -> dict[str, Any]:
    return {"type": "chunk", "chunk": f"binary_U{b64encode(data)}"}


def _bytes(view: StreamView) -> bytes:
    return b"".join(chunk.read() for chunk in view.chunks)


def test_start_chunks_and_end_make_a_file() -> None:
    log = Log()
    view = StreamView()
    view.extend([log.add(A, 1, [START])])
    assert view.info == FileInfo("text/plain", "a.txt", 4)
    view.extend([log.add(A, 2, [_chunk(b"ab")]), log.add(A, 3, [_chunk(b"cd")])])
    assert not view.ended
    view.extend([log.add(A, 4, [END]), log.add(A, 5, [_chunk(b"late")])])
    assert view.ended
    assert _bytes(view) == b"abcd"
    assert [chunk.size for chunk in view.chunks] == [2, 2]


def test_a_session_is_read_in_its_own_order_even_if_its_clock_went_back() -> None:
    log = Log()
    view = StreamView()
    view.extend([log.add(A, 9, [START]), log.add(A, 5, [_chunk(b"1")]), log.add(A, 7, [_chunk(b"2"), END])])
    assert _bytes(view) == b"12"


def test_of_several_sessions_the_one_that_began_first_comes_first_whatever_arrived_first() -> None:
    log = Log()
    first = [log.add(A, 1, [START]), log.add(A, 9, [_chunk(b"1")])]
    second = [log.add(B, 5, [_chunk(b"2")]), log.add(B, 10, [END])]
    for arrival in (first + second, second + first, [second[0], *first, second[1]]):
        view = StreamView()
        for item in arrival:
            view.extend([item])
        assert _bytes(view) == b"12"
        assert view.ended


@given(st.lists(st.tuples(st.sampled_from("ABC"), st.integers(1, 9), st.sampled_from([START, END, _chunk(b"1")]))))
def test_parts_in_any_order_give_the_file_that_a_fresh_reader_sees(arrivals: list[tuple[str, int, Any]]) -> None:
    log = Log()
    view, fresh = StreamView(), StreamView()
    for author, at, change in arrivals:
        view.extend([log.add(f"co_z{author}", at, [change])])
    fresh.reset(log.transactions, frozenset())
    assert (view.info, view.chunks, view.size, view.ended) == (fresh.info, fresh.chunks, fresh.size, fresh.ended)
    assert view.size == len(_bytes(view))


def test_a_later_session_goes_on_without_joining_the_file_anew() -> None:
    log = Log()
    view = StreamView()
    view.extend([log.add(A, 1, [START]), log.add(A, 2, [_chunk(b"1")])])
    before = view.version
    view.extend([log.add(B, 3, [_chunk(b"2")])])
    view.extend([log.add(B, 4, [_chunk(b"3")])])
    assert view.version == before
    assert _bytes(view) == b"123"
    view.extend([log.add(A, 5, [_chunk(b"+")])])
    assert view.version > before
    assert _bytes(view) == b"1+23"


def test_content_of_a_losing_session_is_not_part_of_the_file() -> None:
    log = Log()
    loser = log.add(B, 1, [_chunk(b"lost")])
    kept = [log.add(A, 2, [START]), log.add(A, 3, [_chunk(b"kept")])]
    view = StreamView()
    view.reset([loser, *kept], frozenset({loser}))
    assert _bytes(view) == b"kept"


@pytest.mark.parametrize(
    "change",
    [
        None,
        "x",
        {},
        {"type": "start"},
        {"type": "start", "mimeType": 1},
        {"type": "chunk"},
        {"type": "chunk", "chunk": 1},
    ],
)
def test_malformed_parts_are_ignored(change: Any) -> None:
    view = StreamView()
    view.extend([Log().add(A, 1, [change])])
    assert (view.info, view.chunks, view.ended) == (None, [], False)


def test_a_description_with_wrong_types_is_ignored() -> None:
    view = StreamView()
    view.extend([Log().add(A, 1, [{"type": "start", "mimeType": "x/y", "fileName": 1, "totalSizeBytes": True}])])
    assert view.info == FileInfo("x/y")


@given(st.lists(st.binary(max_size=40), max_size=6))
def test_the_sizes_of_chunks_are_known_without_reading_them(parts: list[bytes]) -> None:
    view = StreamView()
    view.extend([Log().add(A, 1, [_chunk(part) for part in parts])])
    assert [chunk.size for chunk in view.chunks] == [len(part) for part in parts]


async def _group() -> Group:
    hub = await registered(DetachedNode())
    return hub.create_group()


async def test_bytes_are_cut_into_chunks_each_sent_and_signed_by_itself() -> None:
    hub = await registered(DetachedNode())
    group = hub.create_group()
    hub.take()
    data = bytes(range(256)) * 1000
    file = group.create_file(data, mime_type="x/y", name="n")
    assert file.read() == data
    assert file.received == len(data)
    messages = hub.take()
    assert [len(next(iter(message["new"].values()))["newTransactions"]) for message in messages] == [2, 1, 2]
    assert all(message["priority"] == 6 for message in messages)


async def test_an_empty_file_has_no_chunk() -> None:
    file = (await _group()).create_file(b"")
    assert file.read() == b""
    assert file.info == FileInfo("application/octet-stream", None, 0)
    assert len(file.refusals()) == 2


async def test_an_unfinished_or_unstarted_file_is_refused_with_the_reason() -> None:
    file = (await _group()).open_file("x/y", size=3)
    with pytest.raises(InvalidState, match=f"{file.id} is not finished"):
        file.read()
    with pytest.raises(InvalidState, match="was started already"):
        file._start("x/y")
    file.push(b"ab")
    with pytest.raises(InvalidContent, match="has 2 bytes, but its writer declared 3"):
        file.end()
    file.push(b"c")
    file.end()
    file.end()
    with pytest.raises(InvalidState, match="was ended already"):
        file.push(b"d")
    bare = file._host.object_of(file._core, FileStream)
    assert bare is file


async def test_nothing_is_pushed_before_the_start() -> None:
    group = await _group()
    made = group._host.writer.create(owned_header("costream", group.id, 1, meta={"type": "binary"}))
    file = group._host.object_of(made, FileStream)
    for act in (lambda: file.push(b"x"), file.end):
        with pytest.raises(InvalidState, match="was not started"):
            act()


async def test_a_wrong_size_is_detected_by_the_reader() -> None:
    file = (await _group()).open_file("x/y", size=9)
    file._write([_chunk(b"ab")])
    file._write([END])
    with pytest.raises(InvalidContent, match="has 2 bytes, but its writer declared 9"):
        file.read()
    with pytest.raises(InvalidContent, match="has 2 bytes, but its writer declared 9"):
        [part async for part in file.chunks()]


@pytest.mark.parametrize("text", ["binary_U*", "plain", "binary_Uabc=="])
async def test_a_malformed_chunk_is_named(text: str) -> None:
    file = (await _group()).open_file("x/y")
    file._write([{"type": "chunk", "chunk": text}])
    file._write([END])
    with pytest.raises(InvalidContent, match=f"a chunk of the file {file.id} is malformed"):
        file.read()


async def test_chunks_are_yielded_as_they_arrive() -> None:
    file = (await _group()).open_file("x/y")
    parts = file.chunks()
    file.push(b"one")
    assert await anext(parts) == b"one"
    file.push(b"two")
    assert await anext(parts) == b"two"
    file.end()
    assert [part async for part in parts] == []


async def test_other_tasks_run_between_the_chunks_of_a_complete_file() -> None:
    file = (await _group()).create_file(b"x" * 500_000)
    turns: list[int] = []

    async def count() -> None:
        while True:
            turns.append(1)
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    assert [len(part) async for part in file.chunks()] == [102_400] * 4 + [90_400]
    counting.cancel()
    assert len(turns) >= 5


@pytest.mark.parametrize("read", ["chunks", "until_finished"])
async def test_a_complete_file_is_decrypted_piece_by_piece(read: str) -> None:
    hub = DetachedNode()
    writer, reader = await registered(hub, "writer"), await registered(hub, "reader")
    group = writer.create_group()
    await group.add_member("everyone", "reader")
    written = group.create_file(b"x" * 4_000_000)
    await exchange(hub, writer)
    file = await exchange_during(hub, reader, reader.open_file(written.id))
    await exchange(hub, reader)
    turns: list[int] = []

    async def count() -> None:
        while True:
            turns.append(len(file._view.chunks))
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    if read == "chunks":
        assert sum([len(part) async for part in file.chunks()]) == 4_000_000
    else:
        await file.until_finished(max_bytes=4_000_000)
    counting.cancel()
    steps = [after - before for before, after in itertools.pairwise(turns)]
    assert 0 < max(steps) <= 5
    assert file.read() == b"x" * 4_000_000


async def test_a_start_that_changes_while_it_is_read_is_an_error() -> None:
    file = (await _group()).open_file("x/y")
    file.push(b"one")
    file.push(b"two")
    parts = file.chunks()
    await anext(parts)
    kept = [item for item in file._core.transactions if item.index != 1]
    file._view.reset(kept, frozenset())
    with pytest.raises(InvalidState, match="changed while it was read"):
        await anext(parts)


async def test_reading_and_waiting_end_with_the_node_and_with_the_value() -> None:
    group = await _group()
    file, other = group.open_file("x/y"), group.open_file("x/y")
    other.destroy()
    with pytest.raises(ValueDeleted):
        await other.until_finished()
    with pytest.raises(ValueDeleted):
        [part async for part in other.chunks()]
    with pytest.raises(JazzTimeout, match="was not finished by its writer within"):
        await file.until_finished(timeout=0.01)
    group._host.watches.close(NodeClosed("closed"))
    with pytest.raises(NodeClosed):
        [part async for part in file.chunks()]


async def test_a_file_above_the_limit_is_refused_by_its_declared_and_by_its_actual_size() -> None:
    group = await _group()
    said, lied = group.open_file("x/y", size=1000), group.open_file("x/y", size=1)
    lied.push(b"much more")
    for file in (said, lied):
        with pytest.raises(InvalidContent, match=f"the file {file.id} has .* bytes, more than the limit of 8"):
            await file.until_finished(max_bytes=8)


async def test_a_source_is_split_into_full_chunks_and_ended() -> None:
    file = (await _group()).open_file("x/y")
    pieces = [b"x" * 1_000] * 500

    async def source() -> Any:
        for piece in pieces:
            yield piece

    await file.push_all(source())
    assert file.finished
    assert file.read() == b"".join(pieces)
    assert [chunk.size for chunk in file._view.chunks] == [102_400] * 4 + [90_400]
