"""Programs that hang, flood, crash or disconnect: the engine ends their operation, and releases its lock."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pulumi
import pytest
from integration.resident import faulty_program
from integration.resident.sides import resident_side
from support.eventually import eventually_sync

if TYPE_CHECKING:
    from collections.abc import Iterator

    from integration.resident.sides import Program, Side, Sides

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def side(sides: Sides, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Side]:
    """Yield a side whose engine belongs to the user, so that the clients here share it and it continues after them."""
    with resident_side(sides.resident.info, tmp_path_factory.mktemp("clients"), lifetime="user") as made:
        made.stack("first")
        pid = made.engine.status()["pid"]
        try:
            yield made
            assert made.engine.status()["pid"] == pid
        finally:
            made.engine.open(["--engine-stop"], "/").finish()
            eventually_sync("the end of the engine", lambda: not Path(f"/proc/{pid}").exists())


def client(side: Side, stack: str, then: str) -> subprocess.Popen[str]:
    """Return a client in a separate process that is in the middle of an update."""
    settings: Any = side.command.settings  # type: ignore[attr-defined] # the side is a resident one
    workspace = side.workspace(stack)
    document = {
        "engine": settings.engine,
        "folder": str(settings.folder),
        "work_dir": workspace.work_dir,
        "environment": side.environment,
        "stack": stack,
        "then": then,
    }
    process = subprocess.Popen(
        [sys.executable, faulty_program.__file__, json.dumps(document)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "middle\n"
    return process


def program(count: int = 1) -> Program:
    """Declare so many components, without providers."""

    def run() -> None:
        for number in range(count):
            pulumi.ComponentResource("test:index:Alone", f"alone-{number}", None)

    return run


def goes_on(side: Side, stack: str) -> None:
    """Check that the next operation on the stack succeeds, and nothing of the last one remains."""
    eventually_sync("no lock", side.locks, lambda locks: locks == [])
    assert side.up(side.stack_of(stack), program()).error is None
    assert side.up(side.stack_of(stack), program()).changes == {"same": 2}


def test_a_killed_client(side: Side) -> None:
    side.stack("killed")
    process = client(side, "killed", "hang")
    assert len(side.locks()) == 1
    process.kill()
    process.wait()
    goes_on(side, "killed")


def test_a_program_that_ends_its_process(side: Side) -> None:
    side.stack("died")
    process = client(side, "died", "die")
    assert process.wait() == 9
    goes_on(side, "died")


def test_a_program_that_hangs_is_cancelled_by_an_interrupt(side: Side) -> None:
    side.stack("hangs")
    process = client(side, "hangs", "hang")
    process.send_signal(signal.SIGINT)
    assert process.stdout is not None
    name, text = json.loads(process.stdout.readline())
    assert name != "succeeded", text
    process.wait()
    goes_on(side, "hangs")


def test_a_program_that_floods_events(side: Side) -> None:
    stack = side.stack("floods")
    lines = 3000

    def flood() -> None:
        for number in range(lines):
            pulumi.log.info(f"line {number} of the flood")
        program(100)()

    done = side.up(stack, flood)
    assert done.changes == {"create": 101}
    printed = [
        e.diagnostic_event.message
        for e in done.events
        if e.diagnostic_event and "of the flood" in e.diagnostic_event.message
    ]
    assert len(printed) == lines
    assert sorted(printed) == sorted(f"line {number} of the flood\n" for number in range(lines))
    assert side.up(stack, program(100), expect_no_changes=True).changes == {"same": 101}
