"""When an operation is stopped or killed: before, while and after its command starts."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reside.sentinel.engine import ChangeSet, EngineKilled, EngineUnavailable
from reside.sentinel.engine.operation import Operation
from reside.sentinel.engine.runner import CommandResult

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from reside.sentinel.engine.runner import Program


class Command:
    """A command that ends when it is stopped or killed."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.ended = threading.Event()

    def wait(self) -> CommandResult:
        """Wait until it ends."""
        assert self.ended.wait(10)
        return CommandResult("", "", 1)

    def stop(self) -> None:
        """Record the call."""
        self.calls.append("stop")
        self.ended.set()

    def kill(self) -> None:
        """Record the call."""
        self.calls.append("kill")
        self.ended.set()


class Runner:
    """Starts one command, and calls `starting` while it does."""

    def __init__(self) -> None:
        self.command = Command()
        self.started = 0
        self.starting: Callable[[], None] = lambda: None

    def start(self, arguments: Sequence[str], cwd: Path, program: Program | None = None) -> Command:
        """Return the command."""
        self.started += 1
        self.starting()
        return self.command

    def close(self) -> None:
        """Do nothing."""


class TwoCommands(Operation):
    """An operation of two commands."""

    def run(self) -> ChangeSet:
        """Run both."""
        for _ in range(2):
            self._execute(["preview"], Path("/"))
        return ChangeSet((), 0.0)


def test_a_killed_operation_kills_its_command_and_starts_no_other() -> None:
    runner = Runner()
    operation = TwoCommands(runner)
    runner.starting = threading.Timer(0.01, operation.kill).start
    with pytest.raises(EngineKilled, match="was cancelled"):
        operation.run()
    assert runner.command.calls == ["kill"]
    assert runner.started == 1


def test_a_stopped_operation_stops_its_command_once_and_starts_no_other() -> None:
    runner = Runner()
    operation = TwoCommands(runner)

    def stop_twice() -> None:
        operation.stop()
        operation.stop()

    runner.starting = threading.Timer(0.01, stop_twice).start
    with pytest.raises(EngineUnavailable, match="is stopping"):
        operation.run()
    assert runner.command.calls == ["stop"]
    assert runner.started == 1


def test_a_command_that_is_starting_is_killed() -> None:
    runner = Runner()
    operation = TwoCommands(runner)
    runner.starting = operation.kill
    with pytest.raises(EngineKilled):
        operation.run()
    assert runner.command.calls == ["kill"]


def test_a_command_that_is_starting_is_stopped() -> None:
    runner = Runner()
    operation = TwoCommands(runner)
    runner.starting = operation.stop
    with pytest.raises(EngineUnavailable):
        operation.run()
    assert runner.command.calls == ["stop"]


@pytest.mark.parametrize("end", [Operation.stop, Operation.kill])
def test_an_operation_that_was_ended_before_it_began_starts_nothing(end: Callable[[Operation], None]) -> None:
    runner = Runner()
    operation = TwoCommands(runner)
    end(operation)
    with pytest.raises(EngineUnavailable):
        operation.run()
    assert runner.started == 0


def test_an_operation_that_has_ended_is_killed_without_effect() -> None:
    runner = Runner()
    runner.command.ended.set()
    operation = TwoCommands(runner)
    operation.run()
    operation.kill()
    assert runner.command.calls == []
