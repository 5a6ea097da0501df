"""Move the state of a stack to the backend that the settings name, before the operation that finds it elsewhere.

The project file in the workspace names the backend that has the state. If it is another one, the state is exported
there, noted in the workspace, imported, and then removed there. What stayed would be found by a later move back, and
its apply would delete objects that have moved to other stacks since.

Invariant: as long as the note exists, it has the state, and names every backend that may have one. It is removed last.
So a move that was interrupted is repeated from the note, to the backend that the settings name then. No operation on
the stack runs in between, because each begins here.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import structlog

from reside.common.files import sync, write_private
from reside.sentinel.engine.diagnosis import diagnose
from reside.sentinel.engine.errors import EngineBroken, EngineUnavailable
from reside.sentinel.engine.object_store import ObjectStoreFiles, address_of
from reside.sentinel.engine.saved_state import secrets_provider_of, settings_of
from reside.sentinel.engine.stack_files import StackFiles, content_of, own_backend, project_file, recorded_backend

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from reside.sentinel.engine.runner import CommandResult
    from reside.sentinel.engine.settings import EngineSettings

    Execute = Callable[[list[str], Path], CommandResult]

_log = structlog.get_logger(__name__)
VOLUME = "the volume"
_NOTE = ".moving.json"
_FORMER = ".former"
"""Folder in the workspace for commands on a backend that the state has left."""
_PLACE = ("domain", "endpoint", "storage_account")
"""Parameters of an address that say where a bucket is; the others say how it is reached."""
STACK_MISSING = "no stack named"
"""Words of the engine if a backend does not have a stack."""


def files_of(settings: EngineSettings, stack: str) -> StackFiles:
    """Return the files of a stack, for the backend that the settings name."""
    if settings.backend is None:
        return StackFiles(settings, stack)
    return ObjectStoreFiles(settings, stack, settings.backend)


def misplaced(settings: EngineSettings) -> dict[str, str]:
    """Return the stacks whose states are to be moved → where each is now, for people."""
    folder = settings.workspace("-").parent
    found = {}
    for workspace in sorted(folder.iterdir()) if folder.is_dir() else ():
        note = _read(workspace / _NOTE)
        origin = note.places[0] if note is not None else origin_of(settings, workspace.name)
        if origin is not None:
            found[workspace.name] = shown(origin)
    return found


def origin_of(settings: EngineSettings, stack: str) -> str | None:
    """Return the backend that has the state of a stack, if it is not the one that the settings name."""
    workspace = settings.workspace(stack)
    recorded = recorded_backend(content_of(workspace / "Pulumi.yaml"))
    return None if recorded is None or is_same(recorded, _target(settings, stack)) else recorded


def is_same(one: str, other: str) -> bool:
    """Return whether two addresses name the same backend; how it is reached may differ, but not where it is."""
    return _identity(one) == _identity(other)


def shown(address: str) -> str:
    """Return an address of a backend for people, without its query."""
    return VOLUME if _is_volume(address) else urlsplit(address)._replace(query="").geturl()


@dataclass(frozen=True)
class _Note:
    """A move that has begun.

    Attributes:
        places: the backends that may have the state, the one where it was first.
        state: the exported state; None: there is none.
    """

    places: tuple[str, ...]
    state: dict[str, Any] | None


class StateMove:
    """The move of the state of one stack.

    Args:
        settings: the settings of the engine.
        stack: the name of the stack.
        execute: runs a command in a folder.
    """

    def __init__(self, settings: EngineSettings, stack: str, execute: Execute) -> None:
        self._settings = settings
        self._stack = stack
        self._execute = execute
        self._files = files_of(settings, stack)
        self._workspace = settings.workspace(stack)
        self._note = self._workspace / _NOTE
        self._target = _target(settings, stack)

    def run(self) -> None:
        """Move the state if it is not where it should be; complete a move that was interrupted.

        Raises:
            EngineError: it can't be moved now; nothing is lost.
        """
        note = _read(self._note)
        if note is None:
            origin = origin_of(self._settings, self._stack)
            if origin is None:
                return
            note = _Note((origin,), self._export(origin))
        self._finish(note)

    def give_up(self) -> None:
        """Forget the state where it is now, and leave it there: the next apply adopts the live objects.

        Of a move that was interrupted, the state is kept.
        """
        note = _read(self._note)
        if note is not None or origin_of(self._settings, self._stack) is not None:
            self._finish(_Note((), None if note is None else note.state))

    def _finish(self, note: _Note) -> None:
        places = tuple(dict.fromkeys((*note.places, self._target)))
        self._write(_Note(places, note.state))
        _log.info("moving a state", of=self._stack, origin=[shown(each) for each in note.places])
        self._import(note.state)
        others = [each for each in note.places if not is_same(each, self._target)]
        for each in others:
            self._remove(each, note.state)
        if others and note.state is not None and self._files.is_remote and not self._has_stack(self._workspace):
            self._import(note.state)  # two addresses of one store
        self._note.unlink()
        sync(self._workspace)

    def _write(self, note: _Note) -> None:
        self._workspace.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_private(self._note, json.dumps({"places": note.places, "state": note.state}))

    def _export(self, origin: str) -> dict[str, Any] | None:
        """Return the state where it is now; None if there is none."""
        if _is_volume(origin):
            files = StackFiles(self._settings, self._stack)
            files.repair()
            if not files.exists:
                return None
            files.prepare()
        result = self._execute(self._plain("stack", "export"), self._workspace)
        if result.code == 0:
            exported: dict[str, Any] = json.loads(result.stdout)
            return exported
        if STACK_MISSING in result.stderr:
            return None
        error = diagnose(result.code, (), result.stderr, ())
        kind = EngineUnavailable if error.transient else EngineBroken
        raise kind(
            f"the state is in {shown(origin)} and can't be read: make that reachable, or give up the states there by "
            f"`reside state migrate --abandon`: {error.message}"
        )

    def _import(self, state: dict[str, Any] | None) -> None:
        """Replace what the target has by the state."""
        files, name = self._files, self._stack
        settings = None if state is None else settings_of(state.get("deployment") or {})
        if not files.is_remote:
            shutil.rmtree(self._workspace / ".pulumi", ignore_errors=True)
        files.prepare()
        if state is None or settings is None:  # without settings there was no operation: no secret, no object
            if files.is_remote:
                self._remove_stack(self._workspace)
            files.settings_file.unlink(missing_ok=True)
            return
        write_private(files.settings_file, settings)
        own = secrets_provider_of(state["deployment"])
        if not (files.is_remote and self._has_stack(self._workspace)):
            self._run("stack", "init", name, "--secrets-provider", own, "--no-select")
        elif files.is_remote:
            self._run("cancel", name, "--yes")
        draft = self._workspace / "imported.json"
        write_private(draft, json.dumps(state))
        try:
            self._run("stack", "import", "--stack", name, "--file", str(draft))
        finally:
            draft.unlink(missing_ok=True)
        chosen = self._settings.secrets_provider
        if chosen.partition("?")[0] != own.partition("?")[0]:
            self._run("stack", "change-secrets-provider", chosen, "--stack", name)
        files.sync_new()
        files.sync()

    def _remove(self, place: str, state: Mapping[str, Any] | None) -> None:
        """Remove the state from a backend that is not the target."""
        if _is_volume(place):
            shutil.rmtree(self._workspace / ".pulumi", ignore_errors=True)
            return
        folder = self._workspace / _FORMER
        folder.mkdir(exist_ok=True, mode=0o700)
        try:
            (folder / "Pulumi.yaml").write_text(project_file(place), encoding="utf-8")
            settings = settings_of((state or {}).get("deployment") or {})
            if settings is not None:
                write_private(folder / self._files.settings_file.name, settings)
            self._remove_stack(folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _remove_stack(self, folder: Path) -> None:
        """Remove the stack from the backend of a folder, unless it is not there."""
        if self._has_stack(folder):
            self._run("cancel", self._stack, "--yes", folder=folder)
            self._run("stack", "rm", self._stack, "--yes", "--force", folder=folder)

    def _has_stack(self, folder: Path) -> bool:
        result = self._execute(self._plain("stack", "export"), folder)
        if result.code != 0 and STACK_MISSING not in result.stderr:
            raise diagnose(result.code, (), result.stderr, ())
        return result.code == 0

    def _plain(self, *arguments: str) -> list[str]:
        return [*arguments, "--stack", self._stack, "--color", "never"]

    def _run(self, *arguments: str, folder: Path | None = None) -> None:
        result = self._execute([*arguments, "--color", "never"], folder or self._workspace)
        if result.code != 0:
            raise diagnose(result.code, (), result.stderr, ())


def _read(file: Path) -> _Note | None:
    """Return the note of a move; None if there is none.

    Raises:
        EngineBroken: it is damaged. It is written as a whole, so this is a fault of the disk.
    """
    content = content_of(file)
    if content is None:
        return None
    try:
        match json.loads(content):
            case {"places": [*places], "state": (dict() | None) as state}:
                return _Note(tuple(map(str, places)), state)
    except ValueError:
        pass
    raise EngineBroken(f"{file} is damaged: remove it, so that the stack adopts its live objects")


def _target(settings: EngineSettings, stack: str) -> str:
    if settings.backend is None:
        return own_backend(settings.workspace(stack))
    return address_of(settings.backend, stack)


def _is_volume(address: str) -> bool:
    return address.startswith("file:")


def _identity(address: str) -> tuple[str, ...]:
    if _is_volume(address):
        return ("file",)
    parts = urlsplit(address)
    query = parts.query.replace(";", "&").split("&")
    place = sorted(each for each in query if each.partition("=")[0] in _PLACE)
    return parts.scheme, parts.netloc, parts.path.strip("/"), *place
