"""Notice changes of the files that a folder's image is built from."""

from __future__ import annotations

import asyncio
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from watchdog.events import (
    EVENT_TYPE_CLOSED,
    EVENT_TYPE_CREATED,
    EVENT_TYPE_DELETED,
    EVENT_TYPE_MODIFIED,
    EVENT_TYPE_MOVED,
    FileSystemEventHandler,
)
from watchdog.observers import Observer
from watchdog.observers.polling import PollingObserver

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from watchdog.events import FileSystemEvent
    from watchdog.observers.api import BaseObserver

SETTLE_S: Final = 0.05
"""Seconds without a change after which files are read: editors replace a file in several steps."""
LONGEST_S: Final = 2.0
"""Seconds of changes after which files are read all the same: a program may write a file of the folder without end."""
_CHANGES: Final = frozenset(
    {EVENT_TYPE_CLOSED, EVENT_TYPE_CREATED, EVENT_TYPE_DELETED, EVENT_TYPE_MODIFIED, EVENT_TYPE_MOVED}
)
"""What changes a file. To open a file, as a build does, is an event, too."""


class Changes(FileSystemEventHandler):
    """Whether files have changed since they were read last. Events come in threads of the observer."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()
        self.first_at = time.monotonic()
        """When the first change was noticed that `wait` returned for last, as `time.monotonic` has it."""

    def on_any_event(self, event: FileSystemEvent) -> None:
        """Note a change."""
        if event.event_type in _CHANGES and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._changed.set)

    async def wait(self) -> None:
        """Wait for a change, and then until there is none for `SETTLE_S` seconds, but at most for `LONGEST_S`."""
        await self._changed.wait()
        self.first_at = time.monotonic()
        while self._changed.is_set() and time.monotonic() < self.first_at + LONGEST_S:
            self._changed.clear()
            await asyncio.sleep(SETTLE_S)


@contextmanager
def watching(folder: Path) -> Iterator[Changes]:
    """Watch a folder while the block is open. A link to a file elsewhere is followed, as a build follows it."""
    changes = Changes()
    observer = _observer(folder, changes)
    try:
        yield changes
    finally:
        observer.stop()
        observer.join()


def _observer(folder: Path, changes: Changes) -> BaseObserver:
    try:
        return _started(Observer(), folder, changes)
    except OSError:  # the system has no watches left, or can't watch this file system
        return _started(PollingObserver(), folder, changes)


def _started(observer: BaseObserver, folder: Path, changes: Changes) -> BaseObserver:
    observer.schedule(changes, str(folder), recursive=True)
    for other in elsewhere(folder):
        observer.schedule(changes, str(other), recursive=False)
    observer.start()
    return observer


def elsewhere(folder: Path) -> set[Path]:
    """Return the folders outside of a folder that have files to which links in the folder point."""
    root = folder.resolve()
    links = (path for path in folder.iterdir() if path.is_symlink() and path.is_file())  # no loop, which has no target
    return {target.parent for link in links if not (target := link.resolve()).is_relative_to(root)}
