"""A real Traefik on loopback ports, which serves the Ingresses of one namespace."""

from __future__ import annotations

import os
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

import httpx2
from support.eventually import eventually_sync
from support.ports import free_port

from reside.local import Toolchain

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from reside.local import ClusterInfo


@contextmanager
def traefik(cluster: ClusterInfo, namespace: str, ingress_class: str, folder: Path) -> Iterator[int]:
    """Run Traefik while the block is open; return the port of its TLS entry point."""
    secure, ping = free_port(), free_port()
    command = [
        str(Toolchain.default().find("traefik")),
        "--global.checknewversion=false",
        "--global.sendanonymoususage=false",
        "--ping=true",
        "--api.dashboard=false",
        f"--entrypoints.websecure.address=127.0.0.1:{secure}",
        "--entrypoints.websecure.http.tls=true",
        f"--entrypoints.traefik.address=127.0.0.1:{ping}",
        "--providers.kubernetesingress=true",
        f"--providers.kubernetesingress.ingressclass={ingress_class}",
        f"--providers.kubernetesingress.namespaces={namespace}",
        "--providers.kubernetesingress.allowexternalnameservices=true",
    ]
    log = folder / "traefik.log"
    environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig)}
    with log.open("wb") as out, subprocess.Popen(command, env=environment, stdout=out, stderr=out) as process:
        try:
            eventually_sync("Traefik", lambda: _answers(process, ping), within=60)
            yield secure
        finally:
            process.terminate()
            process.wait(60)


def _answers(process: subprocess.Popen[bytes], port: int) -> bool:
    assert process.poll() is None, "Traefik has ended: see its log"
    try:
        return httpx2.get(f"http://127.0.0.1:{port}/ping", trust_env=False, timeout=5).is_success
    except httpx2.TransportError:
        return False
