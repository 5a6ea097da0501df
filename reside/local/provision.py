"""Run the volume provisioner of a local cluster (see `reside.local.volumes`): `python -m reside.local.provision`."""

import argparse
import logging
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2

from reside.local.unixsocket import accept_connections
from reside.local.volumes import TIMEOUT, Provisioner, run


@contextmanager
def _client(server: str, ca: Path, certificate: Path, key: Path) -> Iterator[httpx2.Client]:
    context = ssl.create_default_context(cafile=str(ca))
    context.load_cert_chain(str(certificate), str(key))
    with httpx2.Client(base_url=server, verify=context, timeout=TIMEOUT, trust_env=False) as client:
        yield client


def main() -> None:
    """Run the provisioner of one local cluster."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", required=True)
    for name in ("ca", "certificate", "key", "folder", "socket"):
        parser.add_argument(f"--{name}", required=True, type=Path)
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    options.folder.mkdir(parents=True, exist_ok=True, mode=0o711)
    ready = threading.Event()
    threading.Thread(target=accept_connections, args=(options.socket, ready), daemon=True).start()
    with _client(options.server, options.ca, options.certificate, options.key) as client:
        run(Provisioner(client, options.folder), ready)


if __name__ == "__main__":
    main()
