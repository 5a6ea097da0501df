"""The operations on a stack: preview, apply and destroy.

Each repairs what an interrupted operation left, creates the stack if it does not exist, runs one command with the
declaration of the stack and an event log, and reads the result.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from reside.model.constants import PROVIDER_VERSION
from reside.sentinel.engine.diagnosis import REPLACE_CURE, diagnose
from reside.sentinel.engine.errors import ApplyRejected, EngineBroken, EngineUnavailable
from reside.sentinel.engine.events import EventReader
from reside.sentinel.engine.object_store import ObjectStoreFiles
from reside.sentinel.engine.operation import Operation
from reside.sentinel.engine.port import ChangeSet, StackSpec
from reside.sentinel.engine.replacements import refused
from reside.sentinel.engine.resources import ProviderSettings, declare_stack
from reside.sentinel.engine.runner import Program, Unguarded
from reside.sentinel.engine.stack_files import without_objects, without_pending
from reside.sentinel.engine.state_move import STACK_MISSING, StateMove, files_of
from reside.sentinel.objects.masking import secret_values

if TYPE_CHECKING:
    from collections.abc import Callable

    from reside.sentinel.engine.declaration import Declaration
    from reside.sentinel.engine.runner import CommandResult, CommandRunner
    from reside.sentinel.engine.settings import EngineSettings

_QUIET = ["--color", "never", "--suppress-outputs", "--suppress-progress"]
_OBJECT_MISSING = "not found"
"""Words of the provider if an object of the state does not exist in the cluster."""


class StackOperation(Operation):
    """An operation that runs one main command on a stack.

    Args:
        settings: the settings of the engine.
        runner: runs the commands.
        stack: the stack, with its desired objects.
    """

    def __init__(self, settings: EngineSettings, runner: CommandRunner, stack: StackSpec) -> None:
        super().__init__(runner)
        self._settings = settings
        self._stack = stack
        self._files = files_of(settings, stack.name)
        self._sought = False

    def _run_main(self, *command: str, guarded: bool = False) -> ChangeSet:
        """Run the main command of the operation, which may change cluster and state; return what it changed.

        A command that is killed leaves a mark, and only a command that has refreshed the state removes it. A command
        that another program terminates fails as others do, but its state has pending operations, so the mark stays.

        Raises:
            Unguarded: the command must be guarded, and the runner can't do that; it was not run.
        """
        flags = self._prepare()
        interrupted = self._files.interrupted
        self._files.mark_running()
        reader = EventReader()
        try:
            result, seconds = self._time([*command, *flags], reader, guarded=guarded)
        except Unguarded:
            if not interrupted:
                self._files.mark_ended()
            raise
        if result.code >= 0:
            self._files.sync()
            self._files.clean()
            refreshed = not interrupted or reader.stepped
            if result.code == 0 or (refreshed and not self._files.pending):
                self._files.mark_ended()
        return self._read(result, reader, seconds)

    def _time(self, command: list[str], reader: EventReader, *, guarded: bool) -> tuple[CommandResult, float]:
        """Run the main command; return its result, and how long it took."""
        began = time.monotonic()
        result = self._run_program([*command, *_QUIET, "--stack", self._stack.name], reader, guarded=guarded)
        return result, time.monotonic() - began

    def _read(self, result: CommandResult, reader: EventReader, seconds: float) -> ChangeSet:
        """Return what the main command changed, or raise its error."""
        if result.code > 0 and self.stopped:
            raise EngineUnavailable("the operation was stopped before its end")
        if result.code != 0:
            raise diagnose(result.code, reader.complaints, result.stderr, secret_values(self._stack.objects))
        return ChangeSet(reader.changes, seconds, reader.versions)

    def _guarded(self, run: Callable[[bool], ChangeSet]) -> ChangeSet:
        """Run a main command that replaces only what may be replaced; the argument is whether the runner ensures it."""
        try:
            return run(True)
        except Unguarded:
            self._refuse_replacements()
            return run(False)

    def _prepare(self) -> list[str]:
        """Create or repair the stack; return the flags that the main command needs in addition.

        After an interrupted operation the state is refreshed, because it may contain objects that were deleted.
        """
        files = self._files
        files.prepare()
        self._find()
        if not files.exists:
            self._create()
        elif files.interrupted:
            self._edit_state(without_pending)
            self._release()
            return ["--refresh"]
        else:
            self._release()
        return []

    def _find(self) -> None:
        """Find out whether an object store has the stack, and remove the locks of engines that crashed.

        Only after an interrupted operation, and in a new workspace, there may be something that is not known.
        """
        files, name = self._files, self._stack.name
        if not isinstance(files, ObjectStoreFiles) or self._sought or (files.exists and not files.interrupted):
            return
        self._sought = True
        exported = self._execute(["stack", "export", "--stack", name, "--color", "never"], files.workspace)
        if exported.code != 0:
            if STACK_MISSING not in exported.stderr:
                raise diagnose(exported.code, (), exported.stderr, ())
            files.lost()
            return
        self._run_plain("cancel", name, "--yes")
        if not files.found(json.loads(exported.stdout).get("deployment") or {}):
            self._run_plain("stack", "rm", name, "--yes")
            files.lost()

    def _open(self) -> None:
        """Move the state if it is elsewhere, repair what an interrupted operation left, find out whether it exists."""
        StateMove(self._settings, self._stack.name, self._execute).run()
        self._files.repair()
        if self._files.is_remote:
            self._files.prepare()
            self._find()

    def _discard(self) -> None:
        """Remove the stack, without its objects."""
        if self._files.is_remote and self._files.exists:
            self._run_plain("stack", "rm", self._stack.name, "--yes", "--force")
        self._files.remove()

    def _create(self) -> None:
        """Create the stack in the backend, without resources."""
        files, name = self._files, self._stack.name
        with files.shared_salt():
            self._run_plain("stack", "init", name, "--secrets-provider", self._settings.secrets_provider, "--no-select")
        files.sync_new()

    def _release(self) -> None:
        """Forget the objects that the stack gives to another one."""
        if self._stack.released:
            self._edit_state(lambda state: without_objects(state, self._stack.released))

    def _edit_state(self, edit: Callable[[dict[str, Any]], dict[str, Any] | None]) -> None:
        """Replace the state by what `edit` returns; None leaves it as it is."""
        name = self._stack.name
        edited = edit(json.loads(self._run_plain("stack", "export", "--stack", name).stdout))
        if edited is not None:
            file = self._files.workspace / "edited.json"
            file.write_text(json.dumps(edited), encoding="utf-8")
            self._run_plain("stack", "import", "--stack", name, "--file", str(file))
            file.unlink()

    def _refuse_replacements(self) -> None:
        """Check that the command line would replace only what may be replaced.

        Raises:
            ApplyRejected: it would replace another object.
        """
        if not self._files.exists:
            return
        exported = self._run_plain("stack", "export", "--show-secrets", "--stack", self._stack.name)
        if (found := refused(json.loads(exported.stdout), self._declared().resources)) is not None:
            key, paths = found
            raise ApplyRejected(f"{', '.join(paths)} can't be changed: {REPLACE_CURE}", key)

    def _declared(self) -> Declaration:
        provider = ProviderSettings(PROVIDER_VERSION, self._settings.namespace, self._settings.context)
        return declare_stack(self._stack.name, self._stack.objects, provider, self._stack.expected)

    def _run_program(self, arguments: list[str], reader: EventReader, *, guarded: bool) -> CommandResult:
        """Run a command with the declaration of the stack; its events go to the reader."""
        program = Program(
            self._stack.name,
            self._declared().encode(),
            lambda event: self._receive(event, reader),
            self._files.events,
            guarded,
            in_file=not self._files.is_remote,
        )
        result = self._execute([*arguments, "--exec-kind", "auto.inline"], self._files.workspace, program)
        if result.code == 0 and result.unread is not None:
            raise EngineBroken(
                f"the event log of the engine cannot be read ({type(result.unread).__name__}): install the versions "
                "of the engine and of the Sentinel that belong together"
            )
        return result

    def _receive(self, event: dict[str, Any], reader: EventReader) -> None:
        """Process one event; called on a thread of the command."""
        reader.read(event)

    def _run_plain(self, *arguments: str) -> CommandResult:
        """Run a command without a program.

        Raises:
            EngineError: the command failed.
        """
        result = self._execute([*arguments, "--color", "never"], self._files.workspace)
        if result.code != 0:
            raise diagnose(result.code, (), result.stderr, ())
        return result


class Preview(StackOperation):
    """Compute what an apply would change; see `StackEngine.preview`."""

    def run(self) -> ChangeSet:
        """Run the preview; the files of a stack that did not exist are removed.

        It leaves the mark of an interrupted operation, because it does not store the state that it refreshes.
        """
        self._open()
        existed = self._files.exists
        try:
            return self._guarded(self._preview)
        finally:
            if not existed:
                self._discard()

    def _preview(self, guarded: bool) -> ChangeSet:
        reader = EventReader()
        result, seconds = self._time(["preview", *self._prepare()], reader, guarded=guarded)
        return self._read(result, reader, seconds)


class Apply(StackOperation):
    """Make the cluster contain exactly the objects of the stack; see `StackEngine.apply`."""

    def run(self) -> ChangeSet:
        """Run the apply.

        It fails if an object of the state does not exist in the cluster. Then it is run again with a refresh.
        """
        self._open()
        try:
            return self._up()
        except ApplyRejected as error:
            if _OBJECT_MISSING not in error.message:
                raise
            self._files.mark_running()  # as if the operation had been interrupted
            return self._up()

    def _up(self) -> ChangeSet:
        return self._guarded(lambda guarded: self._run_main("up", "--yes", "--skip-preview", guarded=guarded))


class Destroy(StackOperation):
    """Delete all objects of a stack, and its files; see `StackEngine.destroy`."""

    def run(self) -> ChangeSet:
        """Run the destroy.

        The program runs, without objects, so that the current settings of the provider are used and not those of the
        state.
        """
        self._open()
        changes = ChangeSet((), 0.0)
        if self._files.exists:
            changes = self._run_main("destroy", "--yes", "--skip-preview", "--run-program")
        self._discard()
        return changes
