"""The listening socket of a replica."""

from __future__ import annotations

import socket
from contextlib import closing

from reside.replica.serving import bind


def test_a_response_does_not_wait_for_the_acknowledgement_of_its_head() -> None:
    """Uvicorn writes head and body separately: without this, each call takes 40 ms more."""
    with closing(bind("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()):
        accepted, _ = listener.accept()
        with closing(accepted):
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
