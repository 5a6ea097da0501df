"""Our own care for the file backend: what a crash leaves, what grows for ever, what a preview must not leave behind.

Each stack has a file backend of its own, in its workspace: Pulumi's file backend looks through the folder with the
states of a project several times an operation, so in a common one each stack would slow all others down.

Invariant: called only by the holder of the stack's lane. So a lock file found here belongs to an engine that is dead,
whatever process id and host name it shows (both repeat and change in containers), and is removed.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from reside.common.files import write_private
from reside.sentinel.engine.settings import PROJECT, EngineSettings

_RUNNING = ".running"
_EVENTS = ".events"
_STATES = Path(".pulumi", "stacks", PROJECT)


class Store:
    """The files of one stack. All calls are blocking and short."""

    def __init__(self, settings: EngineSettings, stack: str) -> None:
        """Name the files of ``stack``; nothing is touched yet."""
        self.workspace = settings.workspace(stack)
        root = self.workspace / ".pulumi"
        self._state_file = self.workspace / _STATES / f"{stack}.json"
        self._locks = root / "locks" / "organization" / PROJECT / stack
        self._grown = [root / kind / PROJECT / stack for kind in ("history", "backups")]
        self._running = self.workspace / _RUNNING
        self._config = self.workspace / f"Pulumi.{stack}.yaml"
        self._salt = settings.salt
        self.events = self.workspace / _EVENTS

    @property
    def exists(self) -> bool:
        """Whether the backend knows the stack."""
        return self._state_file.exists()

    @property
    def interrupted(self) -> bool:
        """Whether the last operation did not end by itself."""
        return self._running.exists()

    def prepare(self) -> None:
        """Make the workspace and remove what dead engines left: locks, and states that were being written."""
        self.workspace.mkdir(parents=True, exist_ok=True, mode=0o700)
        (self.workspace / "Pulumi.yaml").write_text(_project_file(self.workspace), encoding="utf-8")
        self.unlock()
        for draft in self._state_file.parent.glob(f"{self._state_file.name}.*.tmp"):
            draft.unlink(missing_ok=True)

    def share_salt(self) -> None:
        """Give a stack that is about to be made the encryption salt of the first one.

        A key is derived from passphrase and salt in 0.16 s of work, and an engine that stays alive remembers it.
        """
        if self._salt.exists():
            shutil.copyfile(self._salt, self._config)

    def keep_salt(self) -> None:
        """Keep the salt of a stack that was just made, if it is the first."""
        if not self._salt.exists():
            write_private(self._salt, self._config.read_bytes())

    def unlock(self) -> None:
        """Remove the stack's lock files."""
        for lock in self._locks.glob("*.json"):
            lock.unlink(missing_ok=True)

    def begin(self) -> None:
        """Note that a changing operation runs; stays when the operation dies."""
        self._running.touch()

    def end(self) -> None:
        """Note that the operation ended by itself, and drop what would grow for ever."""
        self._running.unlink(missing_ok=True)
        for folder in self._grown:
            shutil.rmtree(folder, ignore_errors=True)

    def forget(self) -> None:
        """Remove every file of the stack, its encryption salt included."""
        self.unlock()
        for file in self._state_files():
            file.unlink(missing_ok=True)
        shutil.rmtree(self.workspace, ignore_errors=True)

    def _state_files(self) -> list[Path]:
        return [self._state_file, *self._state_file.parent.glob(f"{self._state_file.name}.*")]


def move_states(settings: EngineSettings) -> None:
    """Bring the states of a former version, which kept all in one backend, to their stacks' workspaces.

    A death in the middle loses nothing: the next call moves the rest.
    """
    common = settings.folder / "state"
    for old in (common / _STATES).glob("*.json"):
        new = settings.workspace(old.stem) / _STATES / old.name
        new.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        old.replace(new)
    if common.exists():
        shutil.rmtree(common)


def _project_file(workspace: Path) -> str:
    """A project whose backend is this folder.

    The backend keeps no attribute files, which are not written atomically: a kill would leave a state that can't be
    read. JSON's strings are YAML's too.
    """
    url = json.dumps(f"file://{workspace}?metadata=skip")
    description = "One desired-state stack of ReSide"
    return f"name: {PROJECT}\nruntime: python\ndescription: {description}\nbackend: {{url: {url}}}\n"


def without_pending(deployment: dict[str, Any]) -> dict[str, Any] | None:
    """An exported state without the operations that a crash left pending, or None if there are none.

    Dropping them is right because every create is a server-side apply: an object that was created after all is taken
    over by the next one.
    """
    inner = deployment.get("deployment") or {}
    if not inner.get("pending_operations"):
        return None
    return {**deployment, "deployment": {key: value for key, value in inner.items() if key != "pending_operations"}}
