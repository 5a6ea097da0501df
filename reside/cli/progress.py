"""Progress of a long command: a live line on a terminal, otherwise one line for each step.

The live line says what the command waits for, and for how long. Plain lines are printed when something changes.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Self

from rich.status import Status
from rich.text import Text

from reside.cli import output

if TYPE_CHECKING:
    from types import TracebackType


class Steps:
    """Context manager that prints the progress of named steps; `seconds` contains how long each took."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._waiting = _Waiting(title)
        self._status = Status(self._waiting, console=output.errors)
        self._open: dict[str, float] = {}
        self._live = output.errors.is_terminal
        self._last = ""
        self.seconds: dict[str, float] = {}

    def report(self, step: str, event: str) -> None:
        """Report that a step is `started`, `done` or `unchanged`; any other text is a message about the step."""
        step = output.printable(step)
        now = time.monotonic()
        if event == "started":
            self._open[step] = now
        elif event in ("done", "unchanged") and step in self._open:
            self.seconds[step] = now - self._open.pop(step)
        self._waiting.start(", ".join(self._open) or step)
        if event != "unchanged" and (not self._live or event != "started"):
            took = f" ({self.seconds[step]:.1f} s)" if event == "done" and step in self.seconds else ""
            self._print(f"{self._title}: {step} {event}{took}".rstrip())

    def _print(self, line: str) -> None:
        if line != self._last:
            output.errors.print(line, highlight=False, markup=False, soft_wrap=True)
        self._last = line

    def __enter__(self) -> Self:
        if self._live:
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._status.stop()


class _Waiting:
    """The live line; it is rendered several times a second."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._what = ""
        self._since = time.monotonic()

    def start(self, what: str) -> None:
        """Wait for something from now on, unless the line waits for it already."""
        if what != self._what:
            self._what = what
            self._since = time.monotonic()

    def __rich__(self) -> Text:
        what = f": {self._what}" if self._what else ""
        return Text(f"{self._title}{what} ({time.monotonic() - self._since:.0f} s)")
