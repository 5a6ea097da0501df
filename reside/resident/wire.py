"""One connection to an engine, which runs one command: JSON lines in both directions (see engine/internal/wire).

    → {"version": 1, "args": [...], "cwd": "/absolute", "stdin": "text"}
    ← {"unserved": "why"} or {"retry": "why"}, and nothing more; or
    ← {"begun": true}, then any number of {"stdout": "text"} and {"stderr": "text"}, then {"exit": code}
    → {"signal": "interrupt"} at any time: the first cancels gracefully, the second terminates

If the stream ends before `begun`, nothing was done; if it ends later without `exit`, the engine died.
"""

from __future__ import annotations

import json
import os
import socket
import struct
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from reside.resident.environment import PROTOCOL

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_LONGEST_PATH = 107
"""The longest path of a socket in bytes that the kernel accepts (unix(7))."""
_PIECE = 1 << 16
_CREDENTIALS = struct.Struct("3i")


class Connection:
    """A connected socket that transports messages."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._buffer = bytearray()
        self._searched = 0

    @staticmethod
    def open(path: Path) -> Connection:
        """Connect to the engine that listens at a path.

        Raises:
            OSError: FileNotFoundError or ConnectionRefusedError if no engine listens.
        """
        connected = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            _connect(connected, path)
        except BaseException:
            connected.close()
            raise
        return Connection(connected)

    @property
    def pid(self) -> int:
        """The process id of the engine."""
        found = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        return int(_CREDENTIALS.unpack(found)[0])

    def request(self, arguments: Sequence[str], cwd: str, stdin: str = "") -> None:
        """Request a command; `stdin` is its complete standard input."""
        self._send({"version": PROTOCOL, "args": list(arguments), "cwd": cwd, "stdin": stdin})

    def interrupt(self) -> None:
        """Send an interrupt, as the interrupt key of a terminal does; no error if the command has ended."""
        with suppress(OSError):
            self._send({"signal": "interrupt"})

    def receive(self) -> dict[str, Any] | None:
        """Return the next message, or None at the end of the stream."""
        while (end := self._buffer.find(b"\n", self._searched)) < 0:
            self._searched = len(self._buffer)
            try:
                piece = self._socket.recv(_PIECE)
            except ConnectionResetError:
                return None  # the engine was killed before it read everything
            if not piece:
                return None
            self._buffer += piece
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        self._searched = 0
        message: dict[str, Any] = json.loads(line)
        return message

    def close(self) -> None:
        """Close the connection; the engine interrupts a command that is still running."""
        self._socket.close()

    def _send(self, message: dict[str, Any]) -> None:
        self._socket.sendall(json.dumps(message).encode() + b"\n")


def _connect(connected: socket.socket, path: Path) -> None:
    if len(os.fsencode(path)) <= _LONGEST_PATH:
        connected.connect(str(path))
        return
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)  # gives the same socket a short path
    try:
        connected.connect(f"/proc/self/fd/{folder}/{path.name}")
    finally:
        os.close(folder)
