"""The files of one stack: its workspace, its state, and the mark of an operation that runs.

Each stack has a file backend of its own, in its workspace. Pulumi's file backend reads the folder with the states of a
project several times an operation, so in a shared backend each stack would slow down all others.

Invariant: only the operation that runs on the stack uses its files. So a lock file that exists before the operation
belongs to an engine that crashed, whatever process id and host name it contains (in containers both repeat and
change), and is removed.
"""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

from reside.common.files import write_private
from reside.sentinel.engine.events import object_of
from reside.sentinel.engine.settings import PROJECT

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from reside.sentinel.engine.settings import EngineSettings

_RUNNING = ".running"
_EVENTS = ".events"


class StackFiles:
    """The files of one stack. All calls are blocking and short; creating the object touches no file.

    Attributes:
        workspace: the folder in which commands run.
        events: the path of the pipe for the event log.
    """

    def __init__(self, settings: EngineSettings, stack: str) -> None:
        self.workspace = settings.workspace(stack)
        self.events = self.workspace / _EVENTS
        root = self.workspace / ".pulumi"
        self._state_file = root / "stacks" / PROJECT / f"{stack}.json"
        self._locks = root / "locks" / "organization" / PROJECT / stack
        self._growing = [root / kind / PROJECT / stack for kind in ("history", "backups")]
        self._running = self.workspace / _RUNNING
        self._config = self.workspace / f"Pulumi.{stack}.yaml"
        self._salt = settings.salt

    @property
    def exists(self) -> bool:
        """Whether the stack exists in the backend."""
        return self._state_file.exists()

    @property
    def interrupted(self) -> bool:
        """Whether the last operation was interrupted."""
        return self._running.exists()

    def prepare(self) -> None:
        """Create the workspace, and remove locks and incomplete state files of crashed engines."""
        self.workspace.mkdir(parents=True, exist_ok=True, mode=0o700)
        (self.workspace / "Pulumi.yaml").write_text(_project_file(self.workspace), encoding="utf-8")
        self._unlock()
        for draft in self._state_file.parent.glob(f"{self._state_file.name}.*.tmp"):
            draft.unlink(missing_ok=True)

    def share_salt(self) -> None:
        """Give a new stack the encryption salt of the first stack.

        A key is derived from passphrase and salt in 0.16 s of CPU time, and the resident engine caches it.
        """
        if self._salt.exists():
            shutil.copyfile(self._salt, self._config)

    def keep_salt(self) -> None:
        """Keep the salt of a stack that was just created, if it is the first one."""
        if not self._salt.exists():
            write_private(self._salt, self._config.read_bytes())

    def mark_running(self) -> None:
        """Mark that an operation runs; the mark of an operation that is interrupted remains."""
        self._running.touch()

    def mark_ended(self) -> None:
        """Remove the mark, and the history and backups, which would grow without limit."""
        self._running.unlink(missing_ok=True)
        for folder in self._growing:
            shutil.rmtree(folder, ignore_errors=True)

    def remove(self) -> None:
        """Remove all files of the stack, its encryption salt included."""
        self._unlock()
        for file in (self._state_file, *self._state_file.parent.glob(f"{self._state_file.name}.*")):
            file.unlink(missing_ok=True)
        shutil.rmtree(self.workspace, ignore_errors=True)

    def _unlock(self) -> None:
        for lock in self._locks.glob("*.json"):
            lock.unlink(missing_ok=True)


def _project_file(workspace: Path) -> str:
    """Return a project file whose backend is the workspace.

    The backend keeps no attribute files (`metadata=skip`). It does not write them atomically, so a crash could leave a
    state that cannot be read. JSON strings are valid YAML.
    """
    url = json.dumps(f"file://{workspace}?metadata=skip")
    description = "One desired-state stack of ReSide"
    return f"name: {PROJECT}\nruntime: python\ndescription: {description}\nbackend: {{url: {url}}}\n"


def without_pending(deployment: dict[str, Any]) -> dict[str, Any] | None:
    """Return an exported state without its pending operations, or None if it has none.

    A crash leaves pending operations. They can be dropped because every create is a server-side apply: if the object
    was created nevertheless, the next create takes it over.
    """
    inner = deployment.get("deployment") or {}
    if not inner.get("pending_operations"):
        return None
    return {**deployment, "deployment": {key: value for key, value in inner.items() if key != "pending_operations"}}


def without_objects(deployment: dict[str, Any], released: Collection[str]) -> dict[str, Any] | None:
    """Return an exported state without these objects (`Kind/name`), or None if it has none of them."""
    inner = deployment.get("deployment") or {}
    resources = inner.get("resources") or []
    forgotten = {found["urn"] for found in resources if object_of(found["urn"]) in released}
    if not forgotten:
        return None
    kept = [_without(found, forgotten) for found in resources if found["urn"] not in forgotten]
    return {**deployment, "deployment": {**inner, "resources": kept}}


def _without(resource: dict[str, Any], forgotten: Collection[str]) -> dict[str, Any]:
    """Return a resource of a state that does not refer to these URNs."""
    found = dict(resource)
    if "dependencies" in found:
        found["dependencies"] = [urn for urn in found["dependencies"] if urn not in forgotten]
    if "propertyDependencies" in found:
        found["propertyDependencies"] = {
            name: [urn for urn in urns or () if urn not in forgotten]
            for name, urns in found["propertyDependencies"].items()
        }
    return found
