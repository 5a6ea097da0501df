"""The operations on the state of a stack: export, import, move, removal. They change no object of the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reside.common.files import write_private
from reside.sentinel.engine.port import ChangeSet, StackSpec
from reside.sentinel.engine.stack_operations import StackOperation
from reside.sentinel.engine.state_move import StateMove

if TYPE_CHECKING:
    from collections.abc import Callable

    from reside.sentinel.engine.runner import CommandRunner
    from reside.sentinel.engine.settings import EngineSettings

_NOTHING = ChangeSet((), 0.0)


class ExportState(StackOperation):
    """Read the state of a stack; see `StackEngine.export_state`.

    Args:
        settings: the settings of the engine.
        runner: runs the commands.
        stack: the stack.
        receive: called with the state, on the thread of the operation; not called if there is none.
    """

    def __init__(
        self, settings: EngineSettings, runner: CommandRunner, stack: StackSpec, receive: Callable[[bytes], object]
    ) -> None:
        super().__init__(settings, runner, stack)
        self._hand_over = receive

    def run(self) -> ChangeSet:
        """Export the state; secrets stay encrypted."""
        self._open()
        if self._files.exists:
            self._files.prepare()
            self._hand_over(self._run_plain("stack", "export", "--stack", self._stack.name).stdout.encode())
        return _NOTHING


class ImportState(StackOperation):
    """Replace the state of a stack; see `StackEngine.import_state`.

    Args:
        settings: the settings of the engine.
        runner: runs the commands.
        stack: the stack.
        state: the state, as `ExportState` returns it.
    """

    def __init__(self, settings: EngineSettings, runner: CommandRunner, stack: StackSpec, state: bytes) -> None:
        super().__init__(settings, runner, stack)
        self._state = state

    def run(self) -> ChangeSet:
        """Import the state. The mark of an interrupted operation remains, so the next operation refreshes."""
        files = self._files
        self._open()
        files.prepare()
        if not files.exists:
            self._create()
        files.mark_running()
        draft = files.workspace / "imported.json"
        write_private(draft, self._state)
        try:
            self._run_plain("stack", "import", "--stack", self._stack.name, "--file", str(draft))
        finally:
            draft.unlink(missing_ok=True)
        files.sync()
        return _NOTHING


class MoveState(StackOperation):
    """Move the state of a stack to the backend of the settings; see `StackEngine.move_state`.

    Args:
        settings: the settings of the engine.
        runner: runs the commands.
        stack: the stack.
        abandon: whether the state is given up where it is now.
    """

    def __init__(self, settings: EngineSettings, runner: CommandRunner, stack: StackSpec, *, abandon: bool) -> None:
        super().__init__(settings, runner, stack)
        self._abandon = abandon

    def run(self) -> ChangeSet:
        """Move the state."""
        move = StateMove(self._settings, self._stack.name, self._execute)
        if self._abandon:
            move.give_up()
        else:
            move.run()
        return _NOTHING


class Forget(StackOperation):
    """Remove the files of a stack; see `StackEngine.forget`."""

    def run(self) -> ChangeSet:
        """Remove the files."""
        self._open()
        self._discard()
        return _NOTHING
