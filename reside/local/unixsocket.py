"""A unix socket whose only answer is that it takes connections: a process's sign of being ready."""

import socket
import threading
from pathlib import Path


def answer_connections(path: Path, ready: threading.Event) -> None:
    """Wait for `ready`, then take connections on a unix socket for ever, closing each at once."""
    ready.wait()
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))
        listener.listen()
        while True:
            connection, _ = listener.accept()
            connection.close()
