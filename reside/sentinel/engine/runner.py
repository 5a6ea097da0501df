"""The interface between an operation and what runs its commands.

There are two command runners: the resident engine (`resident_runner`) and the command line (`cli_runner`). Both accept
the arguments of the `pulumi` command line.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@dataclass(frozen=True)
class Program:
    """The Pulumi program of a stack.

    Attributes:
        stack: name of the stack.
        document: the encoded declaration (see `declaration`); it holds the values of Secrets.
        guarded: whether the runner itself must prevent that a resource is replaced which the declaration does not
            allow to be replaced.
    """

    stack: str
    document: str = field(repr=False)
    guarded: bool = True


class Unguarded(Exception):  # noqa: N818 - not an error, see `CommandRunner.start`
    """The runner can't prevent replacements; the caller must find out before what it would replace."""


@dataclass(frozen=True)
class CommandResult:
    """The result of a command.

    Attributes:
        stdout: what the command wrote to standard output.
        stderr: what the command wrote to standard error.
        code: the exit code; negative if the process that ran the command was killed or crashed.
    """

    stdout: str
    stderr: str
    code: int


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
