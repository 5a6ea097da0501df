"""Reads the engine's event log from a named pipe while the engine writes it.

The engine appends one JSON document a line (`--event-log PATH`) and closes the file before it ends. The pipe keeps a
writing end of its own open until then, so the end of the stream always means that the log is complete.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_END_SECONDS = 10.0


class EventPipe:
    """A reader for the events of one operation on a thread of its own.

    Args:
        path: the path of the pipe; it is created if it does not exist.
        receive: called with each event, in order.

    Attributes:
        failure: why an event could not be read or the log did not end; None if it was read completely.
    """

    def __init__(self, path: Path, receive: Callable[[dict[str, Any]], None]) -> None:
        self.path = path
        self.failure: Exception | None = None
        self._receive = receive
        if not path.exists():
            os.mkfifo(path, 0o600)
        self._writing = os.open(path, os.O_RDWR | os.O_CLOEXEC)  # opened for writing only, it would wait for a reader
        reading = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._thread = threading.Thread(target=self._read, args=(reading,), name="engine-events", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Wait until all events were received; call it when the engine has ended."""
        os.close(self._writing)
        self._thread.join(_END_SECONDS)
        if self._thread.is_alive():
            self.failure = self.failure or TimeoutError("the event log does not end")

    def _read(self, reading: int) -> None:
        with os.fdopen(reading, "rb") as lines:
            for line in lines:
                try:
                    self._receive(orjson.loads(line))
                except (ValueError, KeyError, TypeError) as error:
                    self.failure = self.failure or error
