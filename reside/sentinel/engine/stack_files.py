"""The files of one stack: its workspace, its state, and the mark of an operation that runs.

Each stack has a file backend of its own, in its workspace. Pulumi's file backend reads the folder with the states of a
project several times an operation, so in a shared backend each stack would slow down all others.

Invariant: only the operation that runs on the stack uses its files. So a lock file that exists before the operation
belongs to an engine that crashed, whatever process id and host name it contains (in containers both repeat and
change), and is removed.

An operation survives a power loss at any moment. The engine replaces the state at the end of an operation, by renames,
and syncs nothing. So the mark of an operation is on the disk before its first write, and the state is before the mark
is removed. What is torn in between is recognized and replaced, without a human: by the state before the last write
(`.bak`), by the one at the end of the operation before (`.synced`), or else by none, which makes the operation adopt
the live objects.
"""

from __future__ import annotations

import json
import re
import shutil
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Final

import structlog
from prometheus_client import Counter

from reside.common.files import sync, write_private
from reside.sentinel.engine.events import object_of
from reside.sentinel.engine.saved_state import has_pending, is_state, salt_in_settings, salt_in_state, settings_with
from reside.sentinel.engine.settings import PROJECT

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from reside.sentinel.engine.settings import EngineSettings

_log = structlog.get_logger(__name__)
DAMAGED_STATES = Counter(
    "reside_sentinel_damaged_states_total",
    "Damaged states of stacks, replaced by an earlier state (`backup`) or by the live objects (`adoption`).",
    ["replacement"],
)
_LAYOUT = b"version: 1\n"
"""Content of the file by which the file backend knows that the names of its files contain the project."""
_RUNNING = ".running"
_EVENTS = ".events"
_FIRST_STACK: Final = threading.Lock()
"""Held while a stack is created and no salt is kept yet. Only one Sentinel at a time uses the files."""
_FIRST_S: Final = 10.0
_BACKEND = re.compile(rb'^backend: \{url: (".*")\}$', re.MULTILINE)
"""The line of a project file that names the backend (`project_file`)."""


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
        self._store = root / "meta.yaml"
        self._state_file = root / "stacks" / PROJECT / f"{stack}.json"
        self._before = self._state_file.with_name(f"{stack}.json.bak")
        self._synced = self._state_file.with_name(f"{stack}.json.synced")
        self._locks = root / "locks" / "organization" / PROJECT / stack
        self._growing = [root / kind / PROJECT / stack for kind in ("history", "backups")]
        self._running = self.workspace / _RUNNING
        self._config = self.workspace / f"Pulumi.{stack}.yaml"
        self._project = self.workspace / "Pulumi.yaml"
        self._project_text = project_file(own_backend(self.workspace))
        self._salt = settings.salt

    is_remote: ClassVar[bool] = False
    """Whether the state is elsewhere, in an object store."""

    @property
    def exists(self) -> bool:
        """Whether the stack exists in the backend."""
        return self._state_file.exists()

    @property
    def settings_file(self) -> Path:
        """The file with the settings of the stack: what encrypts its secrets."""
        return self._config

    @property
    def interrupted(self) -> bool:
        """Whether the last operation was interrupted."""
        return self._running.exists()

    @property
    def _states(self) -> tuple[Path, ...]:
        """The state, and what may take its place, the newest first."""
        return self._state_file, self._before, self._synced

    @property
    def pending(self) -> bool:
        """Whether the state contains pending operations, which only an engine that did not end in order leaves."""
        return has_pending(content_of(self._state_file))

    def prepare(self) -> None:
        """Create the workspace, and remove locks and incomplete state files of crashed engines."""
        self.workspace.mkdir(parents=True, exist_ok=True, mode=0o700)
        if content_of(self._project) != self._project_text.encode():
            write_private(self._project, self._project_text)
        self._unlock()
        for draft in self._state_file.parent.glob(f"{self._state_file.name}.*.tmp"):
            draft.unlink(missing_ok=True)

    def repair(self) -> None:
        """Replace a damaged state, and damaged settings of the stack; called before anything else of an operation.

        The operation begins with a refresh if the state was replaced by an older one, or has pending operations without
        a mark: an earlier release removed it if the engine was terminated. Objects that only the damaged state knew
        are found by their labels: what is desired is adopted, the rest is pruned.
        """
        state = content_of(self._state_file)
        self._repair_store()
        if not is_state(state) and any(file.exists() for file in self._states):
            state = self._replace_state()
        if has_pending(state):
            self.mark_running()
        if state is not None:
            self._repair_settings(state)

    def _repair_store(self) -> None:
        """Restore the file that tells the backend where its files are; no command runs while it is damaged."""
        found = content_of(self._store)
        if found != _LAYOUT and (found is not None or any(file.exists() for file in self._states)):
            write_private(self._store, _LAYOUT)

    def _replace_state(self) -> bytes | None:
        earlier = (content_of(file) for file in self._states)
        before = next((content for content in earlier if content is not None and is_state(content)), None)
        if before is not None:
            self.mark_running()
            write_private(self._state_file, before)
        else:
            self._forget()
        replacement = "backup" if before else "adoption"
        DAMAGED_STATES.labels(replacement).inc()
        _log.error("the state of a stack was damaged", of=self._state_file.stem, replaced_by=replacement)
        return before

    def _repair_settings(self, state: bytes) -> None:
        """Restore the encryption salt, without which the engine can't read the state; or give up the state."""
        found, salt = salt_in_settings(content_of(self._config)), salt_in_state(state)
        if salt is None and found is None:
            self._forget()  # a stack without an operation: no secret, no object
        elif salt is not None and salt != found:
            _log.error("the settings of a stack were damaged", of=self._state_file.stem)
            write_private(self._config, settings_with(salt))

    def _forget(self) -> None:
        """Remove the state, older ones first: without all of them, the stack does not exist."""
        for file in reversed(self._states):
            file.unlink(missing_ok=True)

    @contextmanager
    def shared_salt(self) -> Iterator[None]:
        """Give a new stack, which the block creates, the encryption salt of the first stack.

        Each resident engine derives a key from the passphrase and each salt once, in 0.16 s of CPU time. While there is
        no salt, stacks that are created at the same time would each make one, so they are created one after the other.
        A creation waits for at most `_FIRST_S` seconds: a salt of its own only costs a stack time.
        """
        first = self._salt_is_missing() and _FIRST_STACK.acquire(timeout=_FIRST_S)
        try:
            self._share_salt()
            yield
            self._keep_salt()
        finally:
            if first:
                _FIRST_STACK.release()

    def _salt_is_missing(self) -> bool:
        return salt_in_settings(content_of(self._salt)) is None

    def _share_salt(self) -> None:
        if salt := salt_in_settings(content_of(self._salt)):
            write_private(self._config, settings_with(salt))
        else:
            self._config.unlink(missing_ok=True)  # of a stack whose creation was interrupted

    def _keep_salt(self) -> None:
        if self._salt_is_missing():
            write_private(self._salt, self._config.read_bytes())

    def mark_running(self) -> None:
        """Mark that an operation runs; the mark of an operation that is interrupted remains."""
        if not self.interrupted:
            self._running.touch()
            sync(self.workspace)

    def sync_new(self) -> None:
        """Sync what the creation of the stack wrote: state, settings, and the names of all folders."""
        above = self._state_file.parents
        for path in (self._state_file, self._config, *above[: above.index(self._salt.parent) + 2]):
            sync(path)

    def sync(self) -> None:
        """Sync the state to the disk; each file and folder that is synced costs a millisecond.

        A second name keeps this file. Until the next call, the engine replaces the other ones by files that it does not
        sync, so of both a power loss may leave nothing.
        """
        sync(self._state_file)
        self._keep_synced()
        sync(self._state_file.parent)

    def _keep_synced(self) -> None:
        if self._synced.exists() and self._synced.samefile(self._state_file):
            return  # nothing was written; a rename between two names of one file would leave both
        draft = self._synced.with_suffix(".tmp")
        draft.unlink(missing_ok=True)
        draft.hardlink_to(self._state_file)
        draft.replace(self._synced)

    def mark_ended(self) -> None:
        """Remove the mark."""
        self._running.unlink(missing_ok=True)

    def clean(self) -> None:
        """Remove the history and backups, which would grow without limit."""
        for folder in self._growing:
            shutil.rmtree(folder, ignore_errors=True)

    def remove(self) -> None:
        """Remove all files of the stack, its encryption salt included."""
        self._unlock()
        for file in self._state_file.parent.glob(f"{self._state_file.name}.*"):
            file.unlink(missing_ok=True)
        self._state_file.unlink(missing_ok=True)
        shutil.rmtree(self.workspace, ignore_errors=True)

    def _unlock(self) -> None:
        for lock in self._locks.glob("*.json"):
            lock.unlink(missing_ok=True)


def stacks_with_files(settings: EngineSettings) -> frozenset[str]:
    """Return the names of the stacks that have files."""
    folder = settings.workspace("-").parent
    return frozenset(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else frozenset()


def content_of(file: Path) -> bytes | None:
    """Return the content of a file; None if it does not exist."""
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return None


def own_backend(workspace: Path) -> str:
    """Return the address of a file backend in a workspace.

    The backend keeps no attribute files (`metadata=skip`). It does not write them atomically, so a crash could leave a
    state that cannot be read.
    """
    return f"file://{workspace}?metadata=skip"


def project_file(backend: str) -> str:
    """Return a project file with this backend. JSON strings are valid YAML."""
    description = "One desired-state stack of ReSide"
    return f"name: {PROJECT}\nruntime: python\ndescription: {description}\nbackend: {{url: {json.dumps(backend)}}}\n"


def recorded_backend(project: bytes | None) -> str | None:
    """Return the address of the backend in a project file; None if there is none."""
    found = _BACKEND.search(project or b"")
    if found is None:
        return None
    try:
        return str(json.loads(found[1]))
    except ValueError:
        return None


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
