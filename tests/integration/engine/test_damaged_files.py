"""A stack whose files are damaged, or whose operation died between any two writes: the next operation repairs it."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
from typing import TYPE_CHECKING, Any

import pytest
from integration.engine.dying import Died, dies_before
from integration.engine.running import Bench, actions, new_bench, secret, stack
from support.sentinel import config_map

from reside.sentinel.engine import EngineError, EngineKilled, EngineUnavailable
from reside.sentinel.engine.stack_files import StackFiles

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from integration.engine.progress import Progress

    from reside.local import ClusterInfo

pytestmark = pytest.mark.anyio
DAMAGE: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "cut off": lambda path: path.write_bytes(path.read_bytes()[:-40]),
    "zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "garbled": lambda path: path.write_bytes(path.read_bytes().replace(b'"', b"\x93")),
    "missing": lambda path: path.unlink(missing_ok=True),
}
FIRST = (config_map("a", x="1"), config_map("b", x="1"), secret("s", key="hidden"))
SECOND = (config_map("a", x="2"), config_map("b", x="1"), secret("s", key="hidden"))


@pytest.fixture
async def bench(cluster: ClusterInfo, tmp_path: Path) -> AsyncIterator[Bench]:
    """Yield a resident engine; the repair does not depend on what runs the commands."""
    async with new_bench(cluster, tmp_path) as found:
        yield found


def uids(bench: Bench, *keys: str) -> list[str]:
    found = [bench.live(key) for key in keys]
    return [live["metadata"]["uid"] for live in found if live is not None]


async def is_whole(bench: Bench, name: str, objects: tuple[dict[str, Any], ...]) -> None:
    """Check that one operation makes live = desired, with a state that is complete and without anything pending."""
    await bench.engine.apply(stack(*objects, name=name))
    for wanted in objects:
        live = bench.live(f"{wanted['kind']}/{wanted['metadata']['name']}")
        assert live is not None
        assert live.get("data") == wanted.get("data") or wanted["kind"] == "Secret"
    assert set(actions(await bench.engine.apply(stack(*objects, name=name))).values()) == {"same"}
    state = bench.export(name)["deployment"]
    assert not state.get("pending_operations")
    assert len(state["resources"]) == len({resource["urn"] for resource in state["resources"]}) == len(objects) + 2
    files = StackFiles(bench.settings, name)
    assert not files.interrupted
    assert not list((bench.settings.workspace(name) / ".pulumi" / "locks").rglob("*.json"))


async def test_a_damaged_state_is_replaced_without_a_human_and_no_object_is_made_anew(bench: Bench) -> None:
    await bench.engine.apply(stack(*FIRST))
    before = uids(bench, "ConfigMap/a", "ConfigMap/b", "Secret/s")
    files = StackFiles(bench.settings, "demo")
    for state, backup in itertools.product(DAMAGE.values(), (None, *DAMAGE.values())):
        state(files._state_file)
        if backup is not None:
            backup(files._before)
        await bench.engine.apply(stack(*SECOND))
        assert set(actions(await bench.engine.apply(stack(*SECOND))).values()) == {"same"}
    await is_whole(bench, "demo", FIRST)
    assert uids(bench, "ConfigMap/a", "ConfigMap/b", "Secret/s") == before


async def test_damaged_settings_are_restored(bench: Bench) -> None:
    await bench.engine.apply(stack(*FIRST))
    files = StackFiles(bench.settings, "demo")
    for damage in DAMAGE.values():
        damage(files._config)
        assert set(actions(await bench.engine.apply(stack(*FIRST))).values()) == {"same"}
    for settings, state in itertools.product(list(DAMAGE.values())[:2], repeat=2):
        settings(files._config)
        state(files._state_file)
        files._before.unlink()
        files._synced.unlink(missing_ok=True)
        settings(files._salt)
        await bench.engine.apply(stack(*FIRST))
    await is_whole(bench, "demo", FIRST)


async def test_a_preview_and_a_removal_of_a_damaged_stack_work(bench: Bench) -> None:
    await bench.engine.apply(stack(*FIRST))
    files = StackFiles(bench.settings, "demo")
    files._state_file.write_bytes(b"")
    found = await bench.engine.preview(stack(*SECOND))
    assert actions(found) == {"ConfigMap/a": "update", "ConfigMap/b": "same", "Secret/s": "same"}
    files._state_file.write_bytes(b"")
    await bench.engine.destroy("demo")
    assert bench.live("ConfigMap/a") is None
    assert not files.workspace.exists()


async def terminated(bench: Bench) -> None:
    """Update many objects, and interrupt the command twice meanwhile, until an operation was pending at its end."""
    for attempt in range(20):
        middle = asyncio.Event()
        objects = tuple(config_map(f"m{number}", x=str(attempt)) for number in range(25))
        task = asyncio.create_task(bench.engine.apply(stack(*objects), lambda _, set_=middle.set: set_()))
        await middle.wait()
        for operation in bench.engine._operations.values():  # none if it has ended already
            command: Any = operation and operation._command
            if command is not None:
                command.kill()  # not that of the operation, which would know that it was killed
        await asyncio.wait({task})
        failure = task.exception()
        if bench.export("demo")["deployment"].get("pending_operations"):
            assert isinstance(failure, EngineError)
            assert not isinstance(failure, EngineKilled)
            return
        assert failure is None or isinstance(failure, EngineUnavailable)
    pytest.fail("twenty commands left no pending operation")


async def test_an_engine_that_is_terminated_from_outside_leaves_a_stack_that_is_refreshed(bench: Bench) -> None:
    """It ends at once, with the exit code of a failure, and does not store what its last steps did."""
    await terminated(bench)
    files = StackFiles(bench.settings, "demo")
    assert files.interrupted
    await is_whole(bench, "demo", FIRST)
    await terminated(bench)
    files.mark_ended()  # as an earlier release did
    await is_whole(bench, "demo", FIRST)


async def dies_everywhere(
    bench: Bench, act: Callable[[], Awaitable[Any]], repair: Callable[[], Awaitable[None]]
) -> int:
    """Run an operation again and again, and end it before its first change of a file, its second, and so on."""
    for change in itertools.count(1):
        try:
            with dies_before(change, bench.settings.folder):
                await act()
        except Died:
            await repair()
        else:
            return change - 1
    raise AssertionError


async def test_a_sentinel_that_dies_before_any_write_of_an_update_leaves_a_stack_that_is_repaired(bench: Bench) -> None:
    await bench.engine.apply(stack(*FIRST))

    async def repair() -> None:
        await bench.engine.apply(stack(*SECOND))
        assert set(actions(await bench.engine.apply(stack(*SECOND))).values()) == {"same"}
        await bench.engine.apply(stack(*FIRST))

    assert await dies_everywhere(bench, lambda: bench.engine.apply(stack(*SECOND)), repair) >= 3
    await is_whole(bench, "demo", SECOND)


@pytest.mark.soak
async def test_a_sentinel_that_dies_before_any_write_of_a_creation_or_a_removal(bench: Bench) -> None:
    async def removed() -> None:
        await bench.engine.destroy("demo")
        assert bench.live("ConfigMap/a") is None
        assert not bench.settings.workspace("demo").exists()

    async def repair() -> None:
        await is_whole(bench, "demo", FIRST)
        await removed()

    points = await dies_everywhere(bench, lambda: bench.engine.apply(stack(*FIRST)), repair)
    await is_whole(bench, "demo", FIRST)

    async def repair_removal() -> None:
        await removed()
        await bench.engine.apply(stack(*FIRST))

    more = await dies_everywhere(bench, lambda: bench.engine.destroy("demo"), repair_removal)
    assert points >= 10
    assert more >= 5


@pytest.mark.soak
async def test_an_engine_that_is_killed_at_any_event_leaves_a_stack_that_is_repaired(bench: Bench) -> None:
    """The engine writes the state between any two events about an object."""
    objects = tuple(config_map(f"m{number}", x="1") for number in range(4))
    killed = 0
    for event in itertools.count(1):
        seen: list[Progress] = []

        def kill(progress: Progress, at: int = event, seen: list[Progress] = seen) -> None:
            seen.append(progress)
            if len(seen) == at:
                runner: Any = bench.engine._runner
                os.kill(runner._engine._process.pid, signal.SIGKILL)

        try:
            await bench.engine.apply(stack(*objects), kill)
        except EngineKilled:
            killed += 1
        if len(seen) < event:
            break
        await is_whole(bench, "demo", objects)
        await bench.engine.destroy("demo")
    assert killed >= 3
