"""Show the progress of the start or stop of a local cluster: one line with its time for each component."""

import time
from types import TracebackType
from typing import Self

from rich.console import Console, RenderableType
from rich.live import Live
from rich.table import Table

from reside.local.events import Event

_ONGOING = {"starting": "ready", "stopping": "stopped"}


class LiveProgress:
    """A display of events: one line for each finished step, and on a terminal also the running steps with their time.

    Args:
        console: console to print to.

    >>> with LiveProgress(Console()) as progress:  # doctest: +SKIP
    ...     LocalCluster().up(progress)
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._began = time.monotonic()
        self._since: dict[str, float] = {}
        self._live = Live(get_renderable=self._render, console=console, refresh_per_second=5, transient=True)

    def __call__(self, event: Event) -> None:
        """Show an event."""
        if event.phase in _ONGOING:
            self._since[event.component] = event.seconds
            return
        began = self._since.pop(event.component, event.seconds)
        if event.phase != "unchanged":
            self._console.print(
                f"  {event.component:<26} {event.phase:<10} {event.seconds - began:6.1f} s", highlight=False
            )

    def __enter__(self) -> Self:
        self._began = time.monotonic()
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._console.is_terminal:
            self._live.stop()
        if error is None:
            self._console.print(f"  {'total':<26} {'':<10} {time.monotonic() - self._began:6.1f} s", highlight=False)

    def _render(self) -> RenderableType:
        now = time.monotonic() - self._began
        table = Table(show_header=False, box=None, pad_edge=False)
        for component, since in self._since.items():
            table.add_row(f"  [yellow]{component:<26}[/] {now - since:6.1f} s")
        return table
