"""The command `python -m reside.jazz serve`: a server that runs until SIGINT or SIGTERM."""

import asyncio
import os
import signal
import sys
from pathlib import Path

from reside.jazz.errors import JazzUnavailable
from reside.jazz.server.server import SyncServer


async def serve_until_signal(host: str, port: int, db: Path | None) -> None:
    """Run a server, and print its address when it listens.

    Raises:
        JazzUnavailable: the address can't be listened on.
        StoreFailed: the database file can't be used.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    server = SyncServer(host, port, store=db)
    try:
        await server.__aenter__()
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise JazzUnavailable(f"can't listen on {host}:{port}: {reason}; choose another --host or --port") from None
    try:
        sys.stdout.write(f"listening on {server.url}\n")
        sys.stdout.flush()
        await stop.wait()
    finally:
        await server.__aexit__(None, None, None)
