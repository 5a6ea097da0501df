"""Ends this process's part of an operation between any two of its writes, as SIGKILL does.

Python reports each change of the file system to audit hooks. From the chosen one on, every change below a folder
fails, so also nothing that runs while the stack is unwound is written.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_CHANGES = {"os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.truncate", "os.utime", "shutil.rmtree"}


class Died(BaseException):
    """The process has ended here."""


class _Watch:
    """What changes are counted, if any."""

    folder = ""
    until = 0
    seen = 0

    def hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Count a change, and raise if it is the one at which the process dies, or a later one."""
        if not self.folder or not arguments or not isinstance(arguments[0], str | bytes | os.PathLike):
            return
        changes = event in _CHANGES or (event == "open" and bool((arguments[2] or 0) & (os.O_WRONLY | os.O_RDWR)))
        if changes and os.fsdecode(arguments[0]).startswith(self.folder):
            self.seen += 1
            if self.seen >= self.until:
                raise Died(f"before change {self.seen}: {event} {os.fsdecode(arguments[0])}")


@cache
def _watch() -> _Watch:
    """Return the watch; an audit hook can't be removed."""
    made = _Watch()
    sys.addaudithook(made.hook)
    return made


@contextmanager
def mortal(folder: Path) -> Iterator[Callable[[], None]]:
    """Yield what ends this process's part: from its call on, each change below a folder raises `Died`."""
    watch = _watch()
    watch.until, watch.seen, watch.folder = sys.maxsize, 0, f"{folder}/"

    def die() -> None:
        watch.until = 0

    try:
        yield die
    finally:
        watch.folder = ""


@contextmanager
def dies_before(change: int, folder: Path) -> Iterator[None]:
    """Raise `Died` instead of the change with this number (from 1) below a folder, and instead of all later ones."""
    watch = _watch()
    watch.until, watch.seen, watch.folder = change, 0, f"{folder}/"
    try:
        yield
    finally:
        watch.folder = ""
