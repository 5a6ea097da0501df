"""An engine killed at any point: the next operation converges and leaves no lock, orphan or duplicate."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import signal
import subprocess
import sys
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from integration.engine.running import Bench, actions, new_bench, session, stack
from support.eventually import eventually
from support.sentinel import config_map

from reside.common.processes import identify
from reside.sentinel.engine import ApplyRejected, EngineKilled, EngineUnavailable, PulumiEngine
from reside.sentinel.engine.stack_files import StackFiles

if TYPE_CHECKING:
    from collections.abc import Callable

    from integration.engine.progress import Progress

    from reside.local import ClusterInfo

pytestmark = pytest.mark.anyio
MANY = tuple(config_map(f"m{number}", x="1") for number in range(25))


def in_the_middle(act: Callable[[], None], after: int = 5) -> Callable[[Progress], None]:
    """Return a callback that acts once, when the engine has finished some objects."""
    done: list[Progress] = []

    def on_progress(progress: Progress) -> None:
        if progress.phase == "done":
            done.append(progress)
            if len(done) == after:
                act()

    return on_progress


def is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def kill_engine(bench: Bench) -> list[int]:
    """Kill the engine of the running operation; return the process ids of its session."""
    processes = {pid: name for leader in bench.leaders() for pid, name in session(leader).items()}
    for pid, name in processes.items():
        if name in ("pulumi", "reside-engine"):
            os.kill(pid, signal.SIGKILL)
    return list(processes)


async def kill_in_a_creation(bench: Bench) -> list[int]:
    """Create all objects, and kill the engine meanwhile; again if it ended before its events arrived here.

    Returns:
        the process ids of its session.
    """
    for _ in range(5):
        seen: list[int] = []
        try:
            await bench.engine.apply(stack(*MANY), in_the_middle(lambda seen=seen: seen.extend(kill_engine(bench))))
        except EngineKilled:
            return seen
        await bench.engine.destroy("demo")
    raise AssertionError("five kills came after the end of the engine")


async def kill_in_a_deletion(bench: Bench) -> None:
    """Delete all objects but one, and kill the engine meanwhile; again if it ended before its events arrived here."""
    for _ in range(5):
        await bench.engine.apply(stack(*MANY))
        try:
            await bench.engine.apply(stack(MANY[0]), in_the_middle(lambda: kill_engine(bench) and None))
        except EngineKilled:
            return
    pytest.fail("five kills came after the end of the engine")


async def converges(bench: Bench) -> None:
    """Check that one more operation completes the stack of many objects, and the next changes nothing.

    What stays of the interrupted one is looked for before that next one, which may remove it.
    """
    await bench.engine.apply(stack(*MANY))
    names = bench.kubectl("get", "configmap", "-o", "name").split()
    assert {f"configmap/m{number}" for number in range(25)} <= set(names)
    state = bench.export("demo")
    assert not state["deployment"].get("pending_operations")
    resources = [r for r in state["deployment"]["resources"] if r["type"].startswith("kubernetes:")]
    assert len(resources) == len({r["urn"] for r in resources}) == 25
    assert not list((bench.settings.workspace("demo") / ".pulumi" / "locks").rglob("*.json"))
    assert set(actions(await bench.engine.apply(stack(*MANY))).values()) == {"same"}


async def test_engine_killed_in_the_middle_of_a_creation(bench: Bench) -> None:
    seen = await kill_in_a_creation(bench)
    assert len(seen) >= 2  # engine and provider
    await eventually(
        "the end of all processes", lambda: [pid for pid in seen if is_alive(pid)], lambda alive: not alive
    )
    await converges(bench)


async def test_engine_killed_in_the_middle_of_a_deletion(bench: Bench) -> None:
    await kill_in_a_deletion(bench)
    await converges(bench)
    await kill_in_a_deletion(bench)
    await bench.engine.destroy("demo")
    assert bench.kubectl("get", "configmap", "-o", "name", "-l", "app.kubernetes.io/managed-by").split() == []


async def test_a_cancelled_operation_kills_its_engine(bench: Bench) -> None:
    leader = await cancel_in_a_creation(bench)
    assert bench.settings.engine == "resident" or session(leader) == {}
    # The resident engine counts a command until its client has the result, so the count may follow the cancellation
    await eventually("no running operation", lambda: bench.at_work(leader), lambda running: running == 0)
    await converges(bench)


async def cancel_in_a_creation(bench: Bench) -> int:
    """Create all objects, and cancel the operation meanwhile; again if it ended first. Return its process."""
    for _ in range(5):
        middle = asyncio.Event()
        task = asyncio.create_task(bench.engine.apply(stack(*MANY), in_the_middle(middle.set)))
        await middle.wait()
        leaders = bench.leaders()
        task.cancel()
        await asyncio.wait({task})
        if task.cancelled():
            (leader,) = leaders
            return leader
        await task
        await bench.engine.destroy("demo")
    raise AssertionError("five operations ended before they were cancelled")


async def stop_in_a_creation(bench: Bench) -> tuple[asyncio.Task[Any], list[int]]:
    """Create all objects, and stop the engine meanwhile; return the operation, and the processes that it had."""
    middle = asyncio.Event()
    task = asyncio.create_task(bench.engine.apply(stack(*MANY), in_the_middle(middle.set, 2)))
    await middle.wait()
    leaders = bench.leaders()
    await bench.engine.stop()
    await asyncio.wait({task})
    return task, leaders


async def test_a_graceful_stop_leaves_neither_lock_nor_pending_operation(bench: Bench, cluster: ClusterInfo) -> None:
    async with AsyncExitStack() as others:
        folder, engine = bench.settings.folder.parent, bench.settings.engine
        for attempt in range(5):
            task, leaders = await stop_in_a_creation(bench)
            if task.exception() is not None:
                break
            # it ended before the news of its progress arrived here
            bench = await others.enter_async_context(new_bench(cluster, folder / f"{attempt}", engine=engine))
        with pytest.raises(EngineUnavailable, match="stopped before its end"):
            await task
        (leader,) = leaders
        assert session(leader) == {}
        assert not StackFiles(bench.settings, "demo").interrupted
        assert not list((bench.settings.workspace("demo") / ".pulumi" / "locks").rglob("*.json"))
        with pytest.raises(EngineUnavailable, match="stopping"):
            await bench.engine.apply(stack(*MANY))
        async with new_bench(
            cluster, bench.settings.folder.parent, namespace=bench.namespace, engine=bench.settings.engine
        ) as again:
            state = again.export("demo")
            assert not state["deployment"].get("pending_operations")
            await converges(again)


def start_owner(bench: Bench) -> subprocess.Popen[bytes]:
    """Start another process that applies the stack of many objects and prints the process id of its engine."""
    root = Path(__file__).parents[3]
    environment = {**os.environ, "PYTHONPATH": f"{root}:{root / 'tests'}"}
    command = [sys.executable, "-m", "integration.engine.owner"]
    owner = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
    assert owner.stdin is not None
    pickle.dump((bench.settings, stack(*MANY)), owner.stdin)
    owner.stdin.flush()
    return owner


async def test_the_engine_ends_when_its_owner_dies(bench: Bench) -> None:
    """The owner is a separate process here, killed in the middle of a creation."""
    owner = start_owner(bench)
    assert owner.stdout is not None
    leader = int(await asyncio.to_thread(owner.stdout.readline))
    owner.kill()
    owner.communicate()
    # The resident engine interrupts what runs, and again after 10 s; it ends 35 s after its owner at the latest
    await eventually("the end of the engine", lambda: identify(leader) is None, within=60)
    await eventually("the end of the session", lambda: session(leader), lambda alive: not alive)
    await converges(bench)


async def test_a_dead_engines_lock_and_pending_operations_are_cleared(bench: Bench) -> None:
    await bench.engine.apply(stack(*MANY))
    leave_a_crash_behind(bench)
    await converges(bench)


async def test_the_mark_of_a_death_stays_until_a_refresh_has_succeeded(bench: Bench, tmp_path: Path) -> None:
    """Neither a preview nor an operation that can't reach the cluster has refreshed the state."""
    files = StackFiles(bench.settings, "demo")
    await bench.engine.apply(stack(config_map("a", x="1"), config_map("b", x="1")))
    files.mark_running()
    bench.kubectl("delete", "configmap", "a")
    await bench.engine.preview(stack(config_map("a", x="1"), config_map("b", x="2")))
    assert files.interrupted
    dead = tmp_path / "dead.kubeconfig"
    dead.write_text(bench.info.kubeconfig.read_text().replace(bench.info.api_url, "https://127.0.0.1:9"))
    engine = PulumiEngine(replace(bench.settings, kubeconfig=dead))
    try:
        with pytest.raises(EngineUnavailable):  # a retry may help, although it is the refresh that failed
            await engine.apply(stack(config_map("a", x="2")))
        assert files.interrupted
        with pytest.raises(EngineUnavailable):
            await engine.destroy("demo")
        assert files.interrupted
    finally:
        await engine.stop()
    with pytest.raises(ApplyRejected):  # after the refresh
        await bench.engine.apply(stack(config_map("a", x="1"), config_map("Not a name"), config_map("b", x="2")))
    assert not files.interrupted
    await bench.engine.apply(stack(config_map("a", x="1"), config_map("b", x="2")))
    live = bench.live("ConfigMap/a"), bench.live("ConfigMap/b")
    assert [found and found["data"] for found in live] == [{"x": "1"}, {"x": "2"}]


def leave_a_crash_behind(bench: Bench) -> None:
    """Write what an engine that was killed in a creation leaves: lock, pending operation, our own mark."""
    root = bench.settings.workspace("demo") / ".pulumi"
    lock = root / "locks" / "organization" / "reside" / "demo" / "0a0a0a0a-0000-4000-8000-000000000000.json"
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.write_text(json.dumps({"pid": 1, "username": "root", "hostname": "h", "timestamp": "2026-01-01T00:00:00Z"}))
    file = root / "stacks" / "reside" / "demo.json"
    state: dict[str, Any] = json.loads(file.read_text())
    latest = state["checkpoint"]["latest"]
    pending = next(r for r in latest["resources"] if r["type"] == "kubernetes:core/v1:ConfigMap")
    latest["resources"].remove(pending)
    pending = {key: value for key, value in pending.items() if key not in ("id", "outputs")}
    latest["pending_operations"] = [{"resource": pending, "type": "creating"}]
    file.write_text(json.dumps(state))
    StackFiles(bench.settings, "demo").mark_running()
