"""A Unix socket for a health check: it accepts connections as soon as the process is ready."""

import socket
import threading
from pathlib import Path


def accept_connections(path: Path, ready: threading.Event) -> None:
    """Wait for `ready`, then accept connections on a Unix socket forever and close each immediately."""
    ready.wait()
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))
        listener.listen()
        while True:
            connection, _ = listener.accept()
            connection.close()
