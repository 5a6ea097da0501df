"""Progress of a long command: a live line on a terminal, otherwise one line for each step, or events for programs.

The live line says what the command waits for, and for how long. Plain lines are printed when something changes. Lines
go to standard error. Events go to standard output, one JSON object a line: `event` is `started`, `done` or `unchanged`
for a step, `message` for a line about one, `request` for a load request, and `result` for what the command has done.
`reside dev`, which goes on, has a `result` or `failed` for each change, and `log` for what pods write. Errors are lines
in any case.
"""

from __future__ import annotations

import json
import time
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final, Self

import typer
from rich.status import Status
from rich.text import Text

from reside.cli import output

if TYPE_CHECKING:
    from types import TracebackType


class Progress(StrEnum):
    """How progress and result are printed."""

    text = "text"
    json = "json"


ProgressOption = Annotated[
    Progress, typer.Option("--output", "-o", help="`json`: events on standard output, one JSON object a line.")
]
_STEP_EVENTS: Final = ("started", "done", "unchanged")


class Steps:
    """Context manager that prints the progress of named steps; `seconds` contains how long each took.

    Args:
        title: begins each line.
        format_: lines for people, or events for programs.
    """

    def __init__(self, title: str, format_: Progress = Progress.text) -> None:
        self._title = title
        self._format = format_
        self._waiting = _Waiting(title)
        self._status = Status(self._waiting, console=output.errors)
        self._open: dict[str, float] = {}
        self._live = output.errors.is_terminal and format_ is Progress.text
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
        if self._format is Progress.json:
            self._print_event(step, event)
            return
        self._waiting.start(", ".join(self._open) or step)
        if event != "unchanged" and (not self._live or event != "started"):
            took = f" ({self.seconds[step]:.1f} s)" if event == "done" and step in self.seconds else ""
            self._print(f"{self._title}: {step} {event}{took}".rstrip())

    def _print_event(self, step: str, event: str) -> None:
        found: dict[str, Any] = {"event": event, "step": step}
        if event not in _STEP_EVENTS:
            found = {"event": "message", "text": f"{step} {event}".rstrip()}
        elif event == "done" and step in self.seconds:
            found["seconds"] = round(self.seconds[step], 3)
        line = json.dumps(found)
        if line != self._last:
            output.console.out(line, highlight=False)
        self._last = line

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


def print_result(format_: Progress, text: str, **members: Any) -> None:
    """Print the result of a command: a line for people, or an event with these members for programs."""
    if format_ is Progress.json:
        print_event("result", **members)
    else:
        output.line(text)


def print_event(event: str, **members: Any) -> None:
    """Print an event for programs. What is not ASCII is escaped."""
    output.console.out(json.dumps({"event": event, **members}), highlight=False)


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
