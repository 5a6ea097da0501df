"""What the components that are modules of this package share: options, log and a client of the API server."""

import argparse
import logging
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2

from reside.local.unixsocket import accept_connections

TIMEOUT = httpx2.Timeout(15.0)


def read_options(description: str | None, *folders: str) -> argparse.Namespace:
    """Parse the options of such a component, and configure its log.

    Args:
        description: what the component does.
        folders: names of further options whose values are paths.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--server", required=True)
    for name in ("ca", "certificate", "key", "socket", *folders):
        parser.add_argument(f"--{name}", required=True, type=Path)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    return parser.parse_args()


def serve_health(socket: Path) -> threading.Event:
    """Accept connections on a Unix socket after the returned event is set."""
    ready = threading.Event()
    threading.Thread(target=accept_connections, args=(socket, ready), daemon=True).start()
    return ready


@contextmanager
def connect(options: argparse.Namespace) -> Iterator[httpx2.Client]:
    """Return a client of the API server with the component's certificate."""
    context = ssl.create_default_context(cafile=str(options.ca))
    context.load_cert_chain(str(options.certificate), str(options.key))
    with httpx2.Client(base_url=options.server, verify=context, timeout=TIMEOUT, trust_env=False) as client:
        yield client
