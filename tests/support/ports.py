"""Loopback ports for the servers of tests.

A port that the kernel gives and that is closed again may be given to the next connection of any program before a server
listens on it, or while the server restarts. So these ports are below those that the kernel gives to connections and to
listeners on port 0. All test processes of this machine take them in turn, so that none returns soon.
"""

from __future__ import annotations

import fcntl
import os
import socket
import tempfile
from pathlib import Path
from typing import Final

FIRST: Final = 24_000
LAST: Final = 31_999
_TURN: Final = Path(tempfile.gettempdir()) / f"reside-test-ports-{os.getuid()}"
"""The file with the last port that was returned."""


def free_port() -> int:
    """Return a loopback port on which nobody listens, and which no other test process has taken in this turn."""
    with os.fdopen(os.open(_TURN, os.O_RDWR | os.O_CREAT, 0o600), "r+", encoding="ascii") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        last = turn.read()
        port = int(last) if last.isdecimal() else LAST
        for _ in range(FIRST, LAST + 1):
            port = port + 1 if FIRST <= port < LAST else FIRST
            if _is_free(port):
                turn.seek(0)
                turn.truncate()
                turn.write(str(port))
                return port
    raise AssertionError(f"all ports from {FIRST} to {LAST} are in use")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
