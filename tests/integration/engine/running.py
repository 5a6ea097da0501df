"""What tests of the stack engine share: a running engine on a fresh namespace, and its processes."""

from __future__ import annotations

from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from support.sentinel import get, kubectl, metadata, new_namespace

from reside.resident.sessions import session_members
from reside.sentinel.engine import ChangeSet, EngineSettings, PulumiEngine, StackSpec
from reside.sentinel.engine.resident import ResidentRunning

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from reside.local import ClusterInfo
    from reside.sentinel.engine.running import Operator

PASSPHRASE = "the-engine-passphrase-of-a-test"


@dataclass
class Bench:
    """An engine, the namespace it works on, and kubectl beside it."""

    info: ClusterInfo
    namespace: str
    settings: EngineSettings
    engine: PulumiEngine

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """What kubectl prints for the namespace."""
        return kubectl(self.info, "-n", self.namespace, *arguments, stdin=stdin)

    def live(self, key: str) -> dict[str, Any] | None:
        """The live object ``Kind/name``."""
        return get(self.info, self.namespace, key)

    def leaders(self) -> list[int]:
        """Process ids of the engines, or command lines, that are at work; each leads a session."""
        return [leader(operator) for operator in self.engine._busy.values() if operator is not None]

    def at_work(self, leader: int) -> int:
        """How many operations the engine ``leader`` works on; a command line that runs is one."""
        if self.settings.engine == "cli":
            return len(session(leader))
        machine = self.engine._machine
        assert machine is not None
        runner: Any = machine._runner
        return int(runner._engine.status()["running"])


@asynccontextmanager
async def bench(info: ClusterInfo, folder: Path, **changes: Any) -> AsyncIterator[Bench]:
    """A bench on a fresh namespace (or the one named in ``changes``); the engine is stopped at the end."""
    namespace = changes.pop("namespace", None) or new_namespace(info)
    settings = EngineSettings(folder / "engine", PASSPHRASE, namespace, info.kubeconfig, info.context)
    settings = replace(settings, **changes)
    engine = PulumiEngine(settings)
    try:
        yield Bench(info, namespace, settings, engine)
    finally:
        await engine.stop()


def stack(*objects: dict[str, Any], name: str = "demo") -> StackSpec:
    """A stack of these objects."""
    return StackSpec(name, objects)


def secret(name: str, **values: str) -> dict[str, Any]:
    """A Secret with plain values."""
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata(name), "stringData": values}


def actions(changes: ChangeSet) -> dict[str, str]:
    """``Kind/name`` → action."""
    return {change.object: change.action for change in changes.changes}


ENGINES = ("cli", "resident")
"""Both adapters: what is promised holds for either."""


def leader(operator: Operator) -> int:
    """The process that runs an operation's present command."""
    running: Any = operator._running
    process = running._engine._process if isinstance(running, ResidentRunning) else running._process
    return int(process.pid)


def session(leader: int) -> dict[int, str]:
    """Process id → name of all processes in the session of ``leader``."""
    found = {}
    for pid in session_members(leader):
        with suppress(FileNotFoundError, ProcessLookupError):  # it ended while we looked
            found[pid] = Path(f"/proc/{pid}/comm").read_text().strip()
    return found
