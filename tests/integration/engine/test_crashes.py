"""An engine killed at any point: the next operation converges and leaves no lock, orphan or duplicate."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from integration.engine.running import Bench, actions, new_bench, session, stack
from support.eventually import eventually
from support.sentinel import config_map

from reside.common.processes import identify
from reside.sentinel.engine import EngineKilled, EngineUnavailable
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
    """Check that one more operation completes the stack of many objects, and the next changes nothing."""
    await bench.engine.apply(stack(*MANY))
    names = bench.kubectl("get", "configmap", "-o", "name").split()
    assert {f"configmap/m{number}" for number in range(25)} <= set(names)
    assert set(actions(await bench.engine.apply(stack(*MANY))).values()) == {"same"}
    state = bench.export("demo")
    assert not state["deployment"].get("pending_operations")
    resources = [r for r in state["deployment"]["resources"] if r["type"].startswith("kubernetes:")]
    assert len(resources) == len({r["urn"] for r in resources}) == 25
    assert not list((bench.settings.workspace("demo") / ".pulumi" / "locks").rglob("*.json"))


async def test_engine_killed_in_the_middle_of_a_creation(bench: Bench) -> None:
    seen: list[int] = []
    with pytest.raises(EngineKilled):
        await bench.engine.apply(stack(*MANY), in_the_middle(lambda: seen.extend(kill_engine(bench))))
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
    middle = asyncio.Event()
    task = asyncio.create_task(bench.engine.apply(stack(*MANY), in_the_middle(middle.set)))
    await middle.wait()
    (leader,) = bench.leaders()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert bench.settings.engine == "resident" or session(leader) == {}
    # The resident engine counts a command until its client has the result, so the count may follow the cancellation
    await eventually("no running operation", lambda: bench.at_work(leader), lambda running: running == 0)
    await converges(bench)


async def test_a_graceful_stop_leaves_neither_lock_nor_pending_operation(bench: Bench, cluster: ClusterInfo) -> None:
    middle = asyncio.Event()
    task = asyncio.create_task(bench.engine.apply(stack(*MANY), in_the_middle(middle.set, 2)))
    await middle.wait()
    (leader,) = bench.leaders()
    await bench.engine.stop()
    with pytest.raises(EngineUnavailable, match="stopped before its end"):
        await task
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
