"""The engine's lifecycle: access, termination, recycling, and two versions in parallel."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pulumi
import pytest
from integration.resident.sides import resident_side
from pulumi.automation import PulumiCommand
from pulumi.automation.errors import ConcurrentUpdateError
from support.eventually import eventually_sync

from reside.resident import ResidentCommand, ResidentSettings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from integration.resident.sides import Outcome, Program, Side, Sides

NOBODY = 65534
STRANGER = """\
import os, socket, sys
os.setgroups([]); os.setgid({nobody}); os.setuid({nobody})
line = b'{{"version": 1, "args": ["--engine-status"], "cwd": "/"}}\\n'
with socket.socket(socket.AF_UNIX) as s:
    try:
        s.connect(sys.argv[1])
        s.sendall(line)
        print("answer", s.recv(1000))
    except OSError as error:
        print("refused", type(error).__name__)
"""


@pytest.fixture
def side(sides: Sides, tmp_path: Path) -> Iterator[Side]:
    with resident_side(sides.resident.info, tmp_path) as made:
        yield made


class Held:
    """A program that waits in the middle until it is released."""

    def __init__(self) -> None:
        self.middle = threading.Event()
        self.go_on = threading.Event()

    def __call__(self) -> None:
        """Wait after the first resource."""
        first = pulumi.ComponentResource("test:index:Alone", "first", None)

        def wait(_urn: str) -> str:
            self.middle.set()
            assert self.go_on.wait(60)
            return "done"

        pulumi.export("waited", first.urn.apply(wait))


def alone(value: str) -> Program:
    """Return a program without providers."""

    def run() -> None:
        pulumi.ComponentResource("test:index:Alone", "first", None)
        pulumi.export("waited", value)

    return run


def gone(pid: int) -> bool:
    """Return whether the process has ended."""
    return not Path(f"/proc/{pid}").exists()


def test_the_second_of_two_clients_on_one_stack_gets_the_lock_error(side: Side) -> None:
    """With any command, the error is the one of the stock command line."""
    side.stack("shared")
    held = Held()
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(side.up, side.stack_of("shared"), held)
        assert held.middle.wait(60)
        others = (side.command, ResidentCommand(side.command.settings), PulumiCommand())  # type: ignore[attr-defined]
        errors: list[Any] = []
        for command in others:
            other = side.at(side)
            other.command = command
            errors.append(other.up(other.stack_of("shared"), alone("other")).error)
        others[1].close()  # type: ignore[union-attr] # the one in the middle of its operation
        held.go_on.set()
        assert first.result().error is None
    assert [type(error) for error in errors] == [ConcurrentUpdateError] * 3
    for error in errors:
        assert "the stack is currently locked by 1 lock(s)" in str(error)
    assert side.locks() == []


def test_a_terminated_engine_completes_running_operations_and_is_replaced(side: Side) -> None:
    side.stack("terminated")
    held = Held()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(side.up, side.stack_of("terminated"), held)
        assert held.middle.wait(60)
        pid = side.engine.status()["pid"]
        os.kill(pid, signal.SIGTERM)
        held.go_on.set()
        assert running.result().changes == {"create": 2}
    eventually_sync("the end of the engine", lambda: gone(pid))
    assert side.up(side.stack_of("terminated"), alone("done")).changes == {"same": 2}
    assert side.engine.status()["pid"] != pid


@pytest.mark.soak
def test_a_terminated_engine_interrupts_operations_that_do_not_end(side: Side) -> None:
    side.stack("interrupted")
    held = Held()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(side.up, side.stack_of("interrupted"), held)
        assert held.middle.wait(60)
        pid = side.engine.status()["pid"]
        os.kill(pid, signal.SIGTERM)
        eventually_sync("the end of the engine", lambda: gone(pid))
        held.go_on.set()
        assert running.result().error
    assert side.locks() == []
    assert side.up(side.stack_of("interrupted"), alone("done")).error is None


@pytest.mark.soak
def test_a_drain_ends_after_its_limit_although_an_operation_does_not(sides: Sides, tmp_path: Path) -> None:
    """The successor serves other operations meanwhile; the lock of the ended operation is removed."""
    with resident_side(sides.resident.info, tmp_path, max_operations=1, max_drain_seconds=1) as side:
        for name in ("hung", "other"):
            side.stack(name)
        held = Held()
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(side.up, side.stack_of("hung"), held)
            assert held.middle.wait(60)
            old = next(
                int(path.stem) for path in (side.engine.folder / "held").glob("*.json") if "hung" in path.read_text()
            )
            assert side.up(side.stack_of("other"), alone("1")).error is None
            eventually_sync("the end of the engine that drains", lambda: gone(old))
            held.go_on.set()
            assert running.result().error
        assert side.up(side.stack_of("hung"), alone("done")).error is None
        assert side.locks() == []


def test_recycling_during_a_stream_of_operations_causes_no_error(sides: Sides, tmp_path: Path) -> None:
    pids: set[int] = set()

    def series(side: Side, name: str) -> list[Outcome]:
        stack = side.stack(name)
        done: list[Outcome] = []
        # An engine goes on with its work until its successor has started, which takes longer on a busy machine.
        while len(done) < 8 or (len(pids) < 3 and len(done) < 100):
            done.append(side.up(stack, alone(str(len(done) // 2))))
            pids.add(side.engine.status()["pid"])
        return done

    with resident_side(sides.resident.info, tmp_path, max_operations=6) as side:
        with ThreadPoolExecutor(4) as pool:
            done = [outcome for made in pool.map(lambda n: series(side, f"s{n}"), range(4)) for outcome in made]
        assert {outcome.error for outcome in done} == {None}
        assert len(pids) >= 3
        last = side.engine.status()["pid"]
        assert Path(f"/proc/{last}/comm").read_text() == "reside-engine\n", "a successor is called like the first"
        eventually_sync(
            "the end of all engines but the last",
            lambda: {pid for pid in pids if not gone(pid)},
            lambda alive: alive <= {last},
        )


def test_another_version_runs_in_parallel_on_the_same_stacks(side: Side, tmp_path: Path) -> None:
    settings = side.command.settings  # type: ignore[attr-defined] # the side is a resident one
    side.stack("versions")
    assert side.up(side.stack_of("versions"), alone("1")).changes == {"create": 2}
    newer = tmp_path / "newer"
    newer.mkdir()
    for name in ("reside-engine", "reside-plugin-guard"):
        shutil.copy(Path(settings.engine).with_name(name), newer / name)
    own = ResidentSettings(engine=str(newer / "reside-engine"), lifetime="parent", folder=settings.folder)
    with ResidentCommand(own) as command:
        other = side.at(side)
        other.command = command
        assert other.up(other.stack_of("versions"), alone("1")).changes == {"same": 2}
        assert other.engine.status()["pid"] != side.engine.status()["pid"]
        assert side.up(side.stack_of("versions"), alone("1")).changes == {"same": 2}


def test_another_user_can_not_use_the_engine(side: Side, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The mode of the folder prevents access. If the folder is opened, the socket does."""
    side.stack("private")
    socket = side.engine.socket

    def stranger(path: Path) -> str:
        code = STRANGER.format(nobody=NOBODY)
        command = [sys.executable, "-c", code, path.name]  # the whole path may be too long for a socket
        done = subprocess.run(command, cwd=path.parent, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    assert socket.parent.stat().st_mode & 0o777 == 0o700
    assert socket.stat().st_mode & 0o777 == 0o600
    assert stranger(socket) == "refused PermissionError"
    socket.chmod(0o666)
    link = Path("/tmp") / f"reside-stranger-{os.getpid()}"  # noqa: S108 - a path that every user can enter
    os.link(socket, link)
    try:
        assert stranger(link) in {"answer b''", "refused ConnectionResetError", "refused BrokenPipeError"}
    finally:
        link.unlink()
    assert side.engine.status()["pid"]
