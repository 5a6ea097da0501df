"""Standard output and standard error of the process: any text, a closed pipe, a full disk."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reside.access.cures import with_cure
from reside.cli import output

if TYPE_CHECKING:
    from collections.abc import Iterator

CLOSED_PIPE: Final = 141
"""The exit code of a program that is ended by SIGPIPE, as shells show it."""


class _Output(TextIOWrapper):
    """A text stream whose errors name it: those of the system name files only."""

    def __init__(self, stream: TextIOWrapper, title: str) -> None:
        encoding, by_line, at_once = stream.encoding, stream.line_buffering, stream.write_through
        super().__init__(stream.detach(), encoding, "backslashreplace", line_buffering=by_line, write_through=at_once)
        self._title = title

    def write(self, text: str) -> int:
        """Write a text."""
        with self._named():
            return super().write(text)

    def flush(self) -> None:
        """Write what is buffered."""
        with self._named():
            super().flush()

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            error.filename = self._title
            raise


def set_up() -> None:
    """Let both streams take every text: a terminal may have another encoding, and a process may lack a stream."""
    if sys.stdout is None or sys.stderr is None:  # it was closed when the process started
        nothing = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - until the process ends
        sys.stdout, sys.stderr = sys.stdout or nothing, sys.stderr or nothing
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout = _Output(sys.stdout, "standard output")
    if isinstance(sys.stderr, TextIOWrapper):
        sys.stderr = _Output(sys.stderr, "standard error")


def is_closed_pipe(end: SystemExit) -> bool:
    """Return whether the reader of the output has closed it: typer and Rich end the process then."""
    cause = end.__context__
    while cause is not None and not isinstance(cause, BrokenPipeError):
        cause = cause.__context__
    return cause is not None


def end(code: int) -> int:
    """Write what is left of the output; return the exit code.

    Args:
        code: the exit code if standard output can be written.
    """
    try:
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else Python tries again, with a traceback
        if isinstance(error, BrokenPipeError):
            return code or CLOSED_PIPE
        if code == 0:
            output.fail(with_cure(f"{error.filename}: {error.strerror}"))
        return code or 1
    return code
