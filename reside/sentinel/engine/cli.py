"""The first adapter of the engine's port: the stock Pulumi command line under the Automation API.

Operations run in a few warm worker processes (workers.py); which worker serves which stack does not matter, since all
state stands in files. This class keeps the promises of the port: one operation a stack, a bounded number at the same
time, repair after a death, a graceful stop.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reside.model.stacks import ObjectChange
from reside.sentinel.engine.errors import EngineBroken, EngineUnavailable, StackLocked
from reside.sentinel.engine.in_cluster import write_kubeconfig
from reside.sentinel.engine.port import ChangeSet, OnEvent, StackSpec
from reside.sentinel.engine.settings import PROVIDER_VERSION, EngineSettings
from reside.sentinel.engine.workers import WorkerProcess

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_STOP_SECONDS = 25.0
"""How long a graceful stop may take before engines are killed; below the 30 s that Kubernetes gives a pod."""
_IDLE_SECONDS = 5.0


class CliEngine:
    """A :class:`reside.sentinel.engine.port.StackEngine` on the Pulumi command line. Belongs to one event loop."""

    def __init__(self, settings: EngineSettings) -> None:
        """Keep the settings; folders are made and binaries looked for at the first operation."""
        self._settings = settings
        self._slots = asyncio.Semaphore(settings.parallel)
        self._idle: list[WorkerProcess] = []
        self._busy: dict[str, WorkerProcess | None] = {}
        self._stopping = False
        self._ready = False

    async def preview(self, stack: StackSpec, on_event: OnEvent | None = None) -> ChangeSet:
        """See the port."""
        return _changes(await self._operate("preview", stack.name, on_event, stack))

    async def apply(self, stack: StackSpec, on_event: OnEvent | None = None) -> ChangeSet:
        """See the port."""
        return _changes(await self._operate("apply", stack.name, on_event, stack))

    async def destroy(self, name: str) -> ChangeSet:
        """See the port."""
        return _changes(await self._operate("destroy", name, None))

    async def export(self, name: str) -> dict[str, Any]:
        """See the port."""
        return await self._operate("export", name, None)

    async def stop(self) -> None:
        """See the port; what has not ended after 25 seconds is killed."""
        self._stopping = True
        busy = [worker for worker in self._busy.values() if worker is not None]
        idle, self._idle = self._idle, []
        for worker in busy:
            worker.terminate()
        async with asyncio.TaskGroup() as group:
            for worker in idle:
                group.create_task(worker.close(_IDLE_SECONDS))
            for worker in busy:
                group.create_task(worker.close(_STOP_SECONDS))

    async def _operate(
        self, operation: str, name: str, on_event: OnEvent | None, stack: StackSpec | None = None
    ) -> dict[str, Any]:
        if self._stopping:
            raise EngineUnavailable("the engine is stopping")
        if name in self._busy:
            raise StackLocked(f"another operation on stack {name} is running: keep one serial lane a stack")
        self._busy[name] = None
        try:
            request = {"operation": operation, "stack": name, "objects": list(stack.objects) if stack else []}
            async with self._slots, self._worker(name) as worker:
                return await worker.call(request, on_event)
        finally:
            del self._busy[name]

    @asynccontextmanager
    async def _worker(self, name: str) -> AsyncIterator[WorkerProcess]:
        """A worker for one operation: a warm one if there is one; kept afterwards if it is still good."""
        if not self._ready:
            await asyncio.to_thread(_prepare, self._settings)
            self._ready = True
        worker = self._take()
        if worker is None:
            worker = await WorkerProcess.start(self._settings)
        if self._stopping:
            await worker.close(_IDLE_SECONDS)
            raise EngineUnavailable("the engine is stopping")
        self._busy[name] = worker
        try:
            yield worker
        finally:
            if worker.alive and not self._stopping and worker.served < self._settings.worker_operations:
                self._idle.append(worker)
            elif worker.alive and not self._stopping:
                await worker.close(_IDLE_SECONDS)

    def _take(self) -> WorkerProcess | None:
        while self._idle:
            worker = self._idle.pop()
            if worker.alive:
                return worker
        return None


def _prepare(settings: EngineSettings) -> None:
    """Make the folders, and put the provider where the engine looks for plugins."""
    for folder in (settings.folder, settings.home, settings.state):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if settings.kubeconfig is None:
        write_kubeconfig(settings.in_cluster_kubeconfig, settings.namespace, os.environ)
    # The engine would keep a debug log of every run below this name, unencrypted at first; a file turns that off.
    (settings.home / "logs").touch()
    if shutil.which(settings.pulumi) is None:
        raise EngineBroken(f"{settings.pulumi} is not there: run tools/build.py, or correct the engine's settings")
    provider = shutil.which(settings.provider)
    if provider is None:
        raise EngineBroken(f"{settings.provider} is not there: run tools/build.py, or correct the engine's settings")
    plugin = settings.home / "plugins" / f"resource-kubernetes-v{PROVIDER_VERSION}"
    plugin.mkdir(parents=True, exist_ok=True)
    link, target = plugin / "pulumi-resource-kubernetes", Path(provider).resolve()
    if not link.is_symlink() or link.readlink() != target:
        link.unlink(missing_ok=True)
        link.symlink_to(target)


def _changes(document: dict[str, Any]) -> ChangeSet:
    changes = (ObjectChange(c["object"], c["action"], tuple(c["paths"])) for c in document["changes"])
    return ChangeSet(tuple(changes), document["seconds"])
