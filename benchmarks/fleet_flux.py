"""Flux's side of the fleet benchmark: its kustomize-controller, with a source and a Kustomization for each application.

Sources are published by a patch of their status, with an archive that this process serves on loopback. So fetching from
a registry and polling are not measured. With `wait: false`, a Kustomization is Ready once its objects are applied.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import os
import tarfile
import time
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import lightkube
from lightkube.generic_resource import create_namespaced_resource
from lightkube.types import PatchType
from support.live_objects import create_namespace
from support.ports import free_port
from support.sentinel import kubectl

from benchmarks.fleet_apps import application, name_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from reside.local import ClusterInfo

WITHIN_S = 1800.0
CONCURRENT = 20
"""Reconciliations at a time, of the controller."""
_PATCHES = 8
_SOURCE: Any = create_namespaced_resource("source.toolkit.fluxcd.io", "v1", "OCIRepository", "ocirepositories")
_KUSTOMIZATION: Any = create_namespaced_resource("kustomize.toolkit.fluxcd.io", "v1", "Kustomization", "kustomizations")
_KUSTOMIZE = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [app.yaml]\n"


class Flux:
    """A running controller, and the server of its archives.

    Args:
        client: of the API server.
        pid: process id of the controller.
        port: of the server of archives.
        archives: path → archive.
    """

    def __init__(self, client: lightkube.AsyncClient, pid: int, port: int, archives: dict[str, bytes]) -> None:
        self.pid = pid
        self._client: Any = client  # its types don't know our two resources
        self._port = port
        self._archives = archives
        self._serial = 0

    async def apply(self, namespace: str, numbers: list[int], revision: int, *, first: bool = False) -> float:
        """Publish applications; return the seconds until all of their Kustomizations are Ready.

        Args:
            namespace: the namespace of the applications, sources and Kustomizations.
            numbers: which applications.
            revision: the revision of their objects.
            first: whether the sources and Kustomizations are created in this call.
        """
        self._serial += 1
        version = f"latest@sha256:{self._serial:064x}"
        artifacts = {number: self._artifact(number, revision, version) for number in numbers}
        watching = asyncio.create_task(self._ready(namespace, {name_of(number) for number in numbers}, version))
        began = time.monotonic()
        gate = asyncio.Semaphore(_PATCHES)

        async def publish(number: int) -> None:
            async with gate:
                name = name_of(number)
                if first:
                    await self._client.create(_SOURCE(_source(name)), namespace=namespace)
                now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
                ready = {
                    "type": "Ready",
                    "status": "True",
                    "reason": "Succeeded",
                    "message": "",
                    "lastTransitionTime": now,
                }
                status = {"observedGeneration": 1, "artifact": artifacts[number] | {"lastUpdateTime": now}}
                await self._client.patch(
                    _SOURCE.Status,
                    name,
                    {"status": status | {"conditions": [ready]}},
                    namespace=namespace,
                    patch_type=PatchType.MERGE,
                )
                if first:
                    await self._client.create(_KUSTOMIZATION(_kustomization(name, namespace)), namespace=namespace)

        async with asyncio.TaskGroup() as group:
            for number in numbers:
                group.create_task(publish(number))
        await watching
        return time.monotonic() - began

    def _artifact(self, number: int, revision: int, version: str) -> dict[str, Any]:
        packed = io.BytesIO()
        objects = "\n---\n".join(json.dumps(obj) for obj in application(number, revision))
        with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=1) as archive:
            for name, text in (("kustomization.yaml", _KUSTOMIZE), ("app.yaml", objects), ("version", version)):
                member = tarfile.TarInfo(name)
                member.size = len(text)
                archive.addfile(member, io.BytesIO(text.encode()))
        path, content = f"/{self._serial}/{number}.tar.gz", packed.getvalue()
        self._archives[path] = content
        return {
            "url": f"http://127.0.0.1:{self._port}{path}",
            "path": path.lstrip("/"),
            "revision": version,
            "digest": f"sha256:{hashlib.sha256(content).hexdigest()}",
            "size": len(content),
        }

    async def _ready(self, namespace: str, names: set[str], version: str) -> None:
        """Wait until these Kustomizations are Ready with a version."""
        async with asyncio.timeout(WITHIN_S):
            async for _, found in self._client.watch(_KUSTOMIZATION, namespace=namespace):
                status = found.get("status") or {}
                ready = any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions") or ())
                if ready and status.get("lastAppliedRevision") == version:
                    names.discard(found.metadata.name)
                    if not names:
                        return


def _source(name: str) -> Any:
    spec = {"url": "oci://example.invalid/fleet", "interval": "60m"}
    return {"metadata": {"name": name}, "spec": spec}


def _kustomization(name: str, namespace: str) -> Any:
    spec = {
        "interval": "60m",
        "timeout": "5m",
        "prune": True,
        "wait": False,
        "path": "./",
        "targetNamespace": namespace,
        "sourceRef": {"kind": "OCIRepository", "name": name},
    }
    return {"metadata": {"name": name}, "spec": spec}


@asynccontextmanager
async def flux(cluster: ClusterInfo, built: Path, folder: Path) -> AsyncIterator[Flux]:
    """Run the controller of a folder (flux/build.sh) and a server of archives, while the block is open."""
    await asyncio.to_thread(kubectl, cluster, "apply", "--server-side", "-f", str(built / "crds"))
    await asyncio.to_thread(kubectl, cluster, "wait", "--for=condition=established", "--timeout=60s", "crd", "--all")
    await asyncio.to_thread(create_namespace, cluster, "flux-system")
    archives: dict[str, bytes] = {}

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = (await reader.readuntil(b"\r\n\r\n")).split(b" ", 2)[1].decode()
        content = archives.get(path)
        head = (
            f"HTTP/1.1 {'404 Not Found' if content is None else '200 OK'}\r\nContent-Length: {len(content or b'')}\r\n"
        )
        writer.write(f"{head}Connection: close\r\n\r\n".encode() + (content or b""))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    environment = {
        **os.environ,
        "KUBECONFIG": str(cluster.kubeconfig),
        "RUNTIME_NAMESPACE": "flux-system",
        "TMPDIR": str(folder),
    }
    with (folder / "flux.log").open("ab") as out:
        process = await asyncio.create_subprocess_exec(
            built / "kustomize-controller",
            f"--concurrent={CONCURRENT}",
            f"--metrics-addr=127.0.0.1:{free_port()}",
            f"--health-addr=127.0.0.1:{free_port()}",
            env=environment,
            stdout=out,
            stderr=out,
        )
    client = lightkube.AsyncClient(
        config=lightkube.KubeConfig.from_file(cluster.kubeconfig).get(cluster.context), trust_env=False
    )
    try:
        yield Flux(client, process.pid, server.sockets[0].getsockname()[1], archives)
    finally:
        process.terminate()
        await process.wait()
        await client.close()
        server.close()
