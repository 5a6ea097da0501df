"""Frames of a real server, damaged at random: a node neither fails nor hangs, nor keeps more when it gets them again.

`RESIDE_JAZZ_SEED=<number>` tries others; a failure prints the damage and how to run it again.
"""

import copy
import json
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, seed, settings
from hypothesis import strategies as st
from interop.javascript import javascript
from support.jazz_controlled_nodes import DetachedNode, SwitchedNode
from support.jazz_nodes import content
from support.jazz_server import JazzServer

from reside.jazz import Credentials, Value, now_ms
from reside.jazz.values.owned import OwnedValue

pytestmark = pytest.mark.anyio

SEED = int(os.environ.get("RESIDE_JAZZ_SEED", "0"))
SOAK_SEED = SEED or secrets.randbelow(2**32)
READER = Credentials.generate()
COMMON = settings(
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, -1, 0, 1, 0.5, 2**53, 2**64, 10**400, "", "x", "\ud800", "co_z1", "everyone", [], {}, [[]], {"": {}}]
) | st.text(max_size=6)


class Recorder(SwitchedNode):
    """A node that records the frames that it receives."""

    def __init__(self, url: str) -> None:
        super().__init__(url, READER, clock=now_ms)
        self.frames: list[str] = []
        self._runtime._servers.connections[0].transport._on_frame = self._record

    def _record(self, frame: str) -> None:
        self.frames.append(frame)
        self._runtime._servers.connections[0]._received(frame)


@pytest.fixture(scope="module")
async def recorded(jazz: JazzServer) -> list[dict[str, Any]]:
    """Return all messages of a session with values of each kind, a child group, and a removed member."""
    async with javascript() as js:
        reader = Recorder(jazz.url)
        await reader.online()
        await reader.register("reader")
        made = await js("create", actor="js", url=jazz.url, name="js")
        group, parent = await js("group", actor="js"), await js("group", actor="js")
        await js("extend", actor="js", group=group, parent=parent)
        for role in ("reader", "writer"):
            await js("addMember", actor="js", group=group, account=reader.account_id, role=role)
        ids = [
            await js("map", actor="js", group=group, init={"a": 1, "b": {"c": [1, "x"]}}),
            await js("list", actor="js", group=group, init=["a", "b", "c"]),
            await js("feed", actor="js", group=group),
            await js("text", actor="js", group=group, init="abc"),
            await js("unique", actor="js", group=group, type="comap", name="unique", init={"a": 1}),
        ]
        await js("push", actor="js", id=ids[2], value={"x": 1})
        await js("flush", actor="js")
        for co_id in (made["accountID"], parent, group, *ids):
            await reader.load(co_id)
        (await reader.load_map(ids[0])).set("mine", 1)
        await js("remove", actor="js", id=ids[1], at=1)
        await js("removeMember", actor="js", group=group, account=reader.account_id)
        await js("flush", actor="js")
        await reader.catch_up()
        await reader.leave()
    return [json.loads(line) for frame in reader.frames for line in frame.split("\n") if line]


@dataclass(frozen=True)
class Damage:
    """A damage: the recorded message, the place in it, the kind of damage, and a value."""

    message: int
    path: list[int]
    how: str
    other: int
    odd: Any


HOWS = ("replace", "drop", "twice", "swap", "more", "cut", "insert", "nothing")
DAMAGES = st.lists(
    st.builds(
        Damage,
        st.integers(0, 200),
        st.lists(st.integers(0, 20), max_size=6),
        st.sampled_from(HOWS),
        st.integers(0, 5000),
        ODD,
    ),
    min_size=1,
    max_size=12,
)


def _damaged(messages: Sequence[dict[str, Any]], damage: Damage) -> str:
    """Return the frame of a message, damaged."""
    message = copy.deepcopy(messages[damage.message % len(messages)])
    if damage.how in ("cut", "insert"):
        text = json.dumps(message)
        place = damage.other % len(text)
        return text[:place] if damage.how == "cut" else text[:place] + json.dumps(damage.odd) + text[place:]
    parent, key = _part(message, damage.path)
    if damage.how == "replace":
        parent[key] = damage.odd
    elif damage.how == "drop":
        del parent[key]
    elif damage.how == "twice":
        parent[key] = [parent[key], parent[key]] if not isinstance(parent[key], list) else parent[key] * 2
    elif damage.how == "swap":
        other, its_key = _part(messages[damage.other % len(messages)], damage.path)
        parent[key] = copy.deepcopy(other[its_key])
    elif damage.how == "more" and isinstance(parent[key], int | str):
        parent[key] += type(parent[key])(damage.other)
    return json.dumps(message)


def _part(message: Any, path: Sequence[int]) -> tuple[Any, Any]:
    """Return a place anywhere in a message: its container, and the key in it."""
    parent, key = message, None
    for number in path or [0]:
        if key is not None:
            parent = parent[key]
        keys = sorted(parent) if isinstance(parent, dict) else range(len(parent))
        key = keys[number % len(keys)]
        if not isinstance(parent[key], dict | list) or not parent[key]:
            break
    return parent, key


def _hear(node: DetachedNode, frames: Sequence[str]) -> int:
    """Give all frames to a node, read everything, and count what it stores."""
    for frame in frames:
        node.give(frame)
        node.take()
    for core in list(node._host.store.cores.values()):
        if core.header is not None and not core.deleted:
            value = node._host.objects.of(core, Value)
            content(value)
            if isinstance(value, OwnedValue):
                value.refusals()
    cores = node._host.store.cores.values()
    kept = sum(
        len(core.transactions) + len(core.expected) + len(core.rejected) + sum(map(len, core.deferred.values()))
        for core in cores
    )
    return kept + len(cores) + len(node._runtime._servers.connections[0].sync._known)


async def _fuzz(recorded: list[dict[str, Any]], damages: Sequence[Damage], genuine_first: bool) -> None:
    frames = [_damaged(recorded, damage) for damage in damages]
    note("\n".join(frame[:2000] for frame in frames))
    genuine = [json.dumps(message) for message in recorded]
    node = DetachedNode(READER)
    _hear(node, [*genuine, *frames] if genuine_first else [*frames, *genuine])
    kept = _hear(node, frames)
    for _ in range(3):
        assert _hear(node, frames) == kept, "more is kept each time"


@seed(SEED)
@settings(COMMON, max_examples=150)
@given(damages=DAMAGES, genuine_first=st.booleans())
async def test_no_damaged_frames_break_a_node(
    recorded: list[dict[str, Any]], damages: list[Damage], genuine_first: bool
) -> None:
    await _fuzz(recorded, damages, genuine_first)


@seed(SEED)
@settings(COMMON, max_examples=200)
@given(frames=st.lists(st.text(max_size=40) | st.text('{}[]":,0123456789eE.-\\u\n', max_size=40), max_size=5))
async def test_no_text_frame_breaks_a_node(frames: list[str]) -> None:
    node = DetachedNode(READER)
    before = _hear(node, [])
    assert _hear(node, frames) == before


@pytest.mark.soak
@pytest.mark.timeout(4 * 3600)
@seed(SOAK_SEED)
@settings(COMMON, max_examples=20_000)
@given(damages=DAMAGES, genuine_first=st.booleans())
async def test_no_frames_of_many_break_a_node(
    recorded: list[dict[str, Any]], damages: list[Damage], genuine_first: bool
) -> None:
    note(f"RESIDE_JAZZ_SEED={SOAK_SEED}")
    await _fuzz(recorded, damages, genuine_first)
