"""Support for tests of the stack engine: an engine on a namespace of its own, and its processes."""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from integration.engine.progress import ObservedEngine
from support.sentinel import get, kubectl, metadata, new_namespace

from reside.resident.sessions import session_members
from reside.sentinel.engine import ChangeSet, EngineSettings, StackSpec
from reside.sentinel.engine.home import environment
from reside.sentinel.engine.resident_runner import EngineCommand

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from reside.local import ClusterInfo
    from reside.sentinel.engine.operation import Operation

PASSPHRASE = "the-engine-passphrase-of-a-test"


@dataclass
class Bench:
    """An engine, the namespace it works on, and kubectl beside it."""

    info: ClusterInfo
    namespace: str
    settings: EngineSettings
    engine: ObservedEngine

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Return what kubectl prints for the namespace."""
        return kubectl(self.info, "-n", self.namespace, *arguments, stdin=stdin)

    def live(self, key: str) -> dict[str, Any] | None:
        """Return the live object `Kind/name`."""
        return get(self.info, self.namespace, key)

    def leaders(self) -> list[int]:
        """Return the process ids of the running engines, or command lines; each leads a session.

        There is none if the operation has ended before the news of its progress arrived here.
        """
        commands = [operation._command for operation in self.engine._operations.values() if operation is not None]
        return [_process(command) for command in commands if command is not None]

    def at_work(self, leader: int) -> int:
        """Return how many operations the engine `leader` runs; a running command line counts as one."""
        if self.settings.engine == "cli":
            return len(session(leader))
        runner: Any = self.engine._runner
        return int(runner._engine.status()["running"])

    def export(self, stack: str) -> dict[str, Any]:
        """Return the state of a stack as the command line exports it; empty if the stack does not exist."""
        workspace = self.settings.workspace(stack)
        if not workspace.exists():
            return {}
        result = subprocess.run(
            [self.settings.pulumi, "--non-interactive", "stack", "export", "--stack", stack],
            cwd=workspace,
            env={**os.environ, **environment(self.settings)},
            check=True,
            capture_output=True,
        )
        state: dict[str, Any] = json.loads(result.stdout)
        return state


@asynccontextmanager
async def new_bench(info: ClusterInfo, folder: Path, **changes: Any) -> AsyncIterator[Bench]:
    """Yield a bench on a fresh namespace (or the one named in `changes`); the engine is stopped at the end."""
    namespace = changes.pop("namespace", None) or new_namespace(info)
    settings = EngineSettings(folder / "engine", PASSPHRASE, namespace, info.kubeconfig, info.context)
    settings = replace(settings, **changes)
    engine = ObservedEngine(settings)
    try:
        yield Bench(info, namespace, settings, engine)
    finally:
        await engine.stop()


def stack(*objects: dict[str, Any], name: str = "demo") -> StackSpec:
    """Return a stack of these objects."""
    return StackSpec(name, objects)


def secret(name: str, **values: str) -> dict[str, Any]:
    """Return a Secret with plain values."""
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata(name), "stringData": values}


def actions(changes: ChangeSet) -> dict[str, str]:
    """Return the changes as `Kind/name` → action."""
    return {change.object: change.action for change in changes.changes}


ENGINES = ("cli", "resident")
"""Both command runners; each test of the engine runs with both."""


def leader(operation: Operation) -> int:
    """Return the process that runs the current command of an operation."""
    return _process(operation._command)


def _process(command: Any) -> int:
    process = command._engine._process if isinstance(command, EngineCommand) else command._process
    return int(process.pid)


def session(leader: int) -> dict[int, str]:
    """Return the processes in the session of `leader`: process id → name."""
    found = {}
    for pid in session_members(leader):
        with suppress(FileNotFoundError, ProcessLookupError):  # it ended while we looked
            found[pid] = Path(f"/proc/{pid}/comm").read_text().strip()
    return found
