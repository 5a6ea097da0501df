"""The interface between an operation and what runs its commands.

There are two command runners: the resident engine (`resident_runner`) and the command line (`cli_runner`). Both accept
the arguments of the `pulumi` command line.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path


@dataclass(frozen=True)
class Program:
    """The Pulumi program of a stack.

    Attributes:
        stack: name of the stack.
        document: the encoded declaration (see `declaration`); it holds the values of Secrets.
        receive: called with each event of the engine, in order, on a thread of the command; see `events`.
        events: path of a pipe that the runner may use for that; it is created if it does not exist.
        guarded: whether the runner itself must prevent that a resource is replaced which the declaration does not
            allow to be replaced.
        in_file: whether the state of the stack is in a file.
        alone: whether the command gets a process of the provider of its own, because its program may end it.
    """

    stack: str
    document: str = field(repr=False)
    receive: Callable[[dict[str, Any]], None] = field(repr=False)
    events: Path
    guarded: bool = True
    in_file: bool = True
    alone: bool = False


class Unguarded(Exception):  # noqa: N818 - not an error, see `CommandRunner.start`
    """The runner can't prevent replacements; the caller must find out before what it would replace."""


@dataclass(frozen=True)
class CommandResult:
    """The result of a command.

    Attributes:
        stdout: what the command wrote to standard output.
        stderr: what the command wrote to standard error.
        code: the exit code; negative if the process that ran the command was killed or crashed.
        unread: why an event of the program could not be read; None if all were.
    """

    stdout: str
    stderr: str
    code: int
    unread: Exception | None = None


class RunningCommand(Protocol):
    """A command that was started.

    `stop` and `kill` may be called from any thread, also after the command has ended.
    """

    def wait(self) -> CommandResult:
        """Wait until the command ends, and return its result."""
        ...

    def stop(self) -> None:
        """Ask the command to end gracefully; steps in progress are completed and recorded. Call at most once."""
        ...

    def kill(self) -> None:
        """Terminate the command; after this returns, it writes nothing more to the cluster."""
        ...


class Alone:
    """A runner whose programs use processes of the provider that no other command uses.

    Args:
        runner: runs the commands.
    """

    def __init__(self, runner: CommandRunner) -> None:
        self._runner = runner

    def start(self, arguments: Sequence[str], cwd: Path, program: Program | None = None) -> RunningCommand:
        """Start a command; see `CommandRunner.start`."""
        return self._runner.start(arguments, cwd, program and replace(program, alone=True))

    def close(self) -> None:
        """Release nothing, because the runner belongs to another one."""


class CommandRunner(Protocol):
    """An executor of commands of the `pulumi` command line."""

    def start(self, arguments: Sequence[str], cwd: Path, program: Program | None = None) -> RunningCommand:
        """Start a command.

        Args:
            arguments: the arguments of `pulumi`.
            cwd: the working directory, which is the workspace of the stack.
            program: the program that the command runs; None if it needs none.

        Raises:
            EngineUnavailable: the command cannot be started now.
            Unguarded: the program must be guarded, and what runs the command can't do that.
        """
        ...

    def close(self) -> None:
        """Release what is kept between commands."""
        ...
