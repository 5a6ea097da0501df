"""The connection below the sync protocol: back-off, frames, and the limit of concurrent requests."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.asyncio.server import ServerConnection, serve

from reside.jazz import Credentials, JazzUnavailable, Node
from reside.jazz.ids import CoId
from reside.jazz.memory.covalue import Core
from reside.jazz.sync.backoff import back_off
from reside.jazz.sync.load_queue import MAX_IN_FLIGHT, LoadQueue
from reside.jazz.sync.outbox import MAX_BUFFERED_CHARACTERS, MAX_FRAME_CHARACTERS, Outbox
from reside.jazz.sync.transport import Transport

CHANCES = st.floats(0, 1)


@given(failures=st.integers(0, 10_000), chance=CHANCES)
def test_the_pause_before_an_attempt_grows_and_has_a_limit(failures: int, chance: float) -> None:
    assert 0 <= back_off(failures, chance) <= min(0.5 * max(failures, 1), 10)
    if failures:
        assert back_off(failures, chance) >= min(0.25 * failures, 5)


def test_clients_that_lost_one_server_reconnect_at_different_times() -> None:
    assert len({back_off(3, chance / 10) for chance in range(10)}) == 10


@pytest.mark.anyio
@given(sizes=st.lists(st.integers(1, 40_000), min_size=1, max_size=30))
async def test_frames_contain_all_messages_in_order_and_have_a_limited_length(sizes: list[int]) -> None:
    outbox = Outbox()
    messages = [str(place).ljust(size, "x") for place, size in enumerate(sizes)]
    for message in messages:
        outbox.put(message)
    frames = []
    while (frame := outbox.frame()) is not None:
        frames.append(frame)
    assert [message for frame in frames for message in frame.split("\n")] == messages
    assert all(len(frame) <= MAX_FRAME_CHARACTERS or "\n" not in frame for frame in frames)


@pytest.mark.anyio
async def test_messages_without_a_waiting_caller_are_sent_last() -> None:
    outbox = Outbox()
    outbox.put("received", last=True)
    outbox.put("question")
    outbox.put("received more", last=True)
    outbox.put("x" * MAX_FRAME_CHARACTERS)
    assert outbox.frame() == "question"
    outbox.put("answer")
    assert outbox.frame() == "x" * MAX_FRAME_CHARACTERS
    assert outbox.frame() == "answer\nreceived\nreceived more"
    assert (outbox.frame(), outbox.buffered) == (None, 0)


@pytest.mark.anyio
async def test_a_writer_waits_while_too_much_is_buffered() -> None:
    outbox = Outbox()
    await outbox.room()
    for _ in range(5):
        outbox.put("x" * (MAX_BUFFERED_CHARACTERS // 4))
    waiting = asyncio.create_task(outbox.room())
    await asyncio.sleep(0)
    assert not waiting.done()
    outbox.frame()
    await waiting
    assert outbox.buffered == MAX_BUFFERED_CHARACTERS


@pytest.mark.anyio
async def test_much_that_is_sent_in_one_turn_does_not_wait_for_its_end() -> None:
    """The server works on the first requests while the node makes the next ones."""
    received: list[str] = []
    connected, arrived = asyncio.Event(), asyncio.Event()

    async def read(connection: ServerConnection) -> None:
        async for frame in connection:
            received.extend(str(frame).split("\n"))
            if len(received) == 500:
                arrived.set()

    async with serve(read, "127.0.0.1", 0) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        transport = Transport(
            f"ws://127.0.0.1:{port}",
            on_connect=connected.set,
            on_disconnect=lambda: None,
            on_frame=print,
            on_queued=lambda: None,
        )
        running = asyncio.create_task(transport.run())
        async with asyncio.timeout(60):
            await connected.wait()
        messages = [f"{number:0100}" for number in range(500)]
        for message in messages:
            transport.send(message)
            assert transport.outbox.buffered < 10_000
        transport.flush_due()
        async with asyncio.timeout(60):
            await arrived.wait()
        assert received == messages
        running.cancel()
        await asyncio.wait([running])


@pytest.mark.anyio
async def test_a_lost_connection_empties_the_buffer() -> None:
    outbox = Outbox()
    outbox.put("x" * (MAX_BUFFERED_CHARACTERS + 1))
    assert len(outbox.take_all()) == 1
    await outbox.room()
    assert outbox.buffered == 0
    outbox.put("next")
    assert outbox.frame() == "next"


class _Requests:
    """Requests that were sent, at a time that the test sets."""

    def __init__(self) -> None:
        self.cores = [Core(CoId(f"co_z{number}")) for number in range(MAX_IN_FLIGHT + 10)]
        self.sent: list[str] = []
        self.now = 0.0
        self.loads = LoadQueue(lambda core: self.sent.append(core.co_id), lambda: self.now)

    def add_all(self) -> None:
        for core in self.cores:
            self.loads.add(core)


def test_at_most_a_thousand_requests_are_in_flight() -> None:
    asked = _Requests()
    asked.add_all()
    assert asked.sent == [core.co_id for core in asked.cores[:MAX_IN_FLIGHT]]
    assert asked.loads.in_flight == MAX_IN_FLIGHT
    for core in asked.cores[:4]:
        asked.loads.answered(core.co_id)
    assert asked.sent == [core.co_id for core in asked.cores[: MAX_IN_FLIGHT + 4]]
    for core in asked.cores:
        asked.loads.answered(core.co_id)
    assert asked.sent == [core.co_id for core in asked.cores]
    assert asked.loads.in_flight == 0


def test_a_cancelled_request_is_not_sent() -> None:
    asked = _Requests()
    asked.add_all()
    asked.loads.answered(asked.cores[-1].co_id)
    for core in asked.cores:
        asked.loads.answered(core.co_id)
    assert asked.cores[-1].co_id not in asked.sent


def test_requests_without_a_response_do_not_block_the_others() -> None:
    asked = _Requests()
    asked.add_all()
    asked.now = 59.0
    asked.loads.expire()
    assert len(asked.sent) == MAX_IN_FLIGHT
    asked.now = 61.0
    asked.loads.expire()
    assert asked.sent == [core.co_id for core in asked.cores]


def test_a_new_connection_starts_without_requests_in_flight() -> None:
    asked = _Requests()
    asked.add_all()
    asked.loads.reset()
    assert asked.loads.in_flight == 0
    asked.add_all()
    assert len(asked.sent) == 2 * MAX_IN_FLIGHT


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("ws://me:hunter2@127.0.0.1:9/?key=hunter2", "ws://127.0.0.1:9/ within"),
        ("nonsense?key=hunter2", "sync server: nonsense"),
    ],
)
async def test_an_error_shows_the_server_without_what_may_be_secret(url: str, shown: str) -> None:
    with pytest.raises(JazzUnavailable) as caught:
        async with Node(url, Credentials.generate(), connect_timeout=0.1):
            pass
    assert shown in str(caught.value)
    assert "hunter2" not in str(caught.value)
