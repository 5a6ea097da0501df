"""Lines about what a command waits for, such as the return of a part of the platform."""

from __future__ import annotations

import asyncio
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from reside.cli import output
from reside.cli.explanations import with_cure

if TYPE_CHECKING:
    from collections.abc import Iterator

QUIET_S: Final = 1.0
"""Seconds of an outage that are not worth a line."""


class Notice:
    """Lines about what a command waits for; each text is printed once until the command goes on.

    Args:
        quiet_s: seconds after the first text during which nothing is printed.
    """

    def __init__(self, quiet_s: float = QUIET_S) -> None:
        self._quiet_s = quiet_s
        self._since: float | None = None
        self._said: set[str] = set()

    def waits(self, why: str) -> None:
        """Print why the command waits."""
        self._since = time.monotonic() if self._since is None else self._since
        if why not in self._said and time.monotonic() - self._since >= self._quiet_s:
            self._said.add(why)
            say(f"waiting: {with_cure(why)}")

    @contextmanager
    def after(self, seconds: float, why: str) -> Iterator[None]:
        """Print why the command waits if the block lasts longer than this."""
        began = time.monotonic()

        def late() -> None:
            self._since = self._since or began
            self.waits(why)

        timer = asyncio.get_running_loop().call_later(seconds, late)
        try:
            yield
        finally:
            timer.cancel()

    def goes_on(self) -> None:
        """Print that the command goes on, if it was printed that it waits."""
        if self._said and self._since is not None:
            say(f"it goes on after {time.monotonic() - self._since:.0f} s")
        self.ends()

    def ends(self) -> None:
        """Forget what the command has waited for: it does not wait any more, and does not go on either."""
        self._since = None
        self._said.clear()


def say(line: str) -> None:
    """Print a line to standard error."""
    output.errors.print(output.printable(line), highlight=False, markup=False, soft_wrap=True)
