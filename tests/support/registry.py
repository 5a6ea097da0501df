"""A real registry (Debian's docker-registry) on a free loopback port."""

from __future__ import annotations

import shutil
import socket
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import httpx2
import yaml
from support.eventually import eventually_sync

from reside.common.tls import trusted_authorities

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAME = "registry.reside.internal"
_DEADLINE = 120.0  # seconds until the registry must respond


@dataclass(frozen=True)
class Registry:
    """A running registry; `port` is on 127.0.0.1."""

    port: int
    process: subprocess.Popen[bytes]

    @property
    def address(self) -> str:
        """Host and port for pushes with Docker, which allows loopback without TLS."""
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """Plain HTTP address."""
        return f"http://{self.address}"

    @property
    def mirrors(self) -> dict[str, str]:
        """The client setting that maps ReSide's registry name to this registry."""
        return {NAME: self.url}


def free_port() -> int:
    """Return a loopback port that has no listener now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@contextmanager
def registry(folder: Path) -> Iterator[Registry]:
    """Run a registry that stores its images in `folder`; another run with the same folder has them, too."""
    binary = shutil.which("docker-registry")
    assert binary is not None, "docker-registry is missing: apt-get install docker-registry"
    port = free_port()
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "config.yml"
    config.write_text(
        yaml.safe_dump(
            {
                "version": 0.1,
                "log": {"level": "warn"},
                "storage": {"filesystem": {"rootdirectory": str(folder / "data")}},
                "http": {"addr": f"127.0.0.1:{port}"},
            }
        )
    )
    with (folder / "registry.log").open("ab") as log:
        process = subprocess.Popen([binary, "serve", str(config)], stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    try:
        _await_answer(port, process)
        yield Registry(port, process)
    finally:
        process.terminate()
        process.wait(timeout=60)


def _await_answer(port: int, process: subprocess.Popen[bytes]) -> None:
    def answer() -> str:
        assert process.poll() is None, f"docker-registry ended with {process.returncode}: see its log"
        try:
            httpx2.get(
                f"http://127.0.0.1:{port}/v2/", timeout=5, verify=trusted_authorities(), trust_env=False
            ).raise_for_status()
        except httpx2.TransportError as error:
            return str(error) or type(error).__name__
        return ""

    eventually_sync("an answer of docker-registry", answer, lambda error: not error, within=_DEADLINE, show=str)
