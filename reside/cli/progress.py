"""Progress of a long command: a live line on a terminal, otherwise one line for each step."""

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
        self._status = Status(title, console=output.errors)
        self._open: dict[str, float] = {}
        self._live = output.errors.is_terminal
        self.seconds: dict[str, float] = {}

    def report(self, step: str, event: str) -> None:
        """Report that a step is `started`, `done` or `unchanged`; any other text is a message about the step."""
        step = output.printable(step)
        now = time.monotonic()
        if event == "started":
            self._open[step] = now
        elif event in ("done", "unchanged") and step in self._open:
            self.seconds[step] = now - self._open.pop(step)
        if self._live:
            self._status.update(Text(f"{self._title}: {', '.join(self._open) or step}"))
        if event != "unchanged" and (not self._live or event != "started"):
            took = f" ({self.seconds[step]:.1f} s)" if event == "done" and step in self.seconds else ""
            output.errors.print(f"{self._title}: {step} {event}{took}", highlight=False, markup=False, soft_wrap=True)

    def __enter__(self) -> Self:
        if self._live:
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._status.stop()
