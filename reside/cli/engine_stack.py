"""A stack of the bootstrap, run with as few processes as possible.

`Stack.up` of the Automation API starts seven processes of Pulumi's command line, and a language host that lists all
packages of the environment. Here the program runs in this process, and an `up` starts two: one that creates or selects
the stack, and one that does the work. The outputs come with the events.
"""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

from pulumi.automation import (
    LocalWorkspace,
    OutputMap,
    OutputValue,
    PulumiCommand,
    Stack,
    StackAlreadyExistsError,
    StackNotFoundError,
    UpdateSummary,
)
from pulumi.automation._stack import StackInitMode
from semver import VersionInfo

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pulumi.automation import EngineEvent

    from reside.seed.settings import BootstrapSettings

_STACK_TYPE: Final = "pulumi:pulumi:Stack"
_PROGRAM: Final = "stacks.bootstrap.program"


class _Command(PulumiCommand):
    """The command line of the toolchain, which has the version of the SDK (a test compares them)."""

    def __init__(self) -> None:
        self.command = "pulumi"
        self.version = VersionInfo.parse(version("pulumi"))


class BootstrapStack(Stack):
    """A stack whose outputs are those of the last `up`."""

    def __init__(self, name: str, workspace: LocalWorkspace, *, exists: bool) -> None:
        """Select the stack, or create it.

        Args:
            name: name of the stack.
            workspace: the workspace.
            exists: whether it probably exists.
        """
        self._outputs: dict[str, Any] | None = None
        first, second = StackInitMode.SELECT, StackInitMode.CREATE
        try:
            super().__init__(name, workspace, first if exists else second)
        except (StackNotFoundError, StackAlreadyExistsError):
            super().__init__(name, workspace, second if exists else first)

    def run(self, report: Callable[[EngineEvent], None]) -> dict[str, Any]:
        """Run `up`; call `report` with each event, and return the outputs.

        Raises:
            CommandError: it failed.
        """

        def handle(event: EngineEvent) -> None:
            done = event.res_outputs_event
            if done is not None and done.metadata.type == _STACK_TYPE and done.metadata.new is not None:
                self._outputs = dict(done.metadata.new.outputs or {})
            report(event)

        result = self.up(on_event=handle, color="never", suppress_progress=True)
        return {name: output.value for name, output in result.outputs.items()}

    def outputs(self) -> OutputMap:
        """Return the outputs. They are in the event that ends the program, and hold no secret."""
        if not self._outputs:
            return super().outputs()
        return {name: OutputValue(value, secret=False) for name, value in self._outputs.items()}

    def info(self, show_secrets: bool = True) -> UpdateSummary | None:  # noqa: ARG002 - as the API calls it
        """Return a summary without details: nobody reads it, and the API would start a process for it."""
        return UpdateSummary("update", datetime.now(UTC), "", {}, {}, "succeeded")


def open_stack(
    name: str,
    root: Path,
    environment: Mapping[str, str],
    settings: BootstrapSettings,
    *,
    key: str | None,
    exists: bool,
) -> BootstrapStack:
    """Select or create a stack; load the program meanwhile.

    Args:
        name: name of the stack.
        root: folder of the project.
        environment: variables for the engine.
        settings: settings of the program.
        key: what encrypts the secrets of a new stack; None: the passphrase.
        exists: whether the stack probably exists.
    """
    loading = threading.Thread(target=import_module, args=(_PROGRAM,), name="load the program")
    loading.start()

    def program() -> None:
        loading.join()
        import_module(_PROGRAM).declare(settings)  # again, to raise the error of a program that can't be loaded

    workspace = LocalWorkspace(
        str(root), program=program, env_vars=environment, secrets_provider=key, pulumi_command=_Command()
    )
    return BootstrapStack(name, workspace, exists=exists)
