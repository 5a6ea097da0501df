"""``PulumiCommand`` on the resident engine: what the Automation API runs instead of the ``pulumi`` binary."""

from __future__ import annotations

import logging
import os
import threading
from typing import TYPE_CHECKING, Self

from pulumi.automation import CommandResult, PulumiCommand
from pulumi.automation._cmd import _parse_and_validate_pulumi_version
from pulumi.automation._env import _SKIP_VERSION_CHECK_VAR
from pulumi.automation._minimum_version import _MINIMUM_VERSION
from pulumi.automation.errors import create_command_error

from reside.resident.channels import keep_apart
from reside.resident.engine import Engine
from reside.resident.environment import command_environment, find_binary, identity
from reside.resident.errors import EngineUnavailable, Unserved
from reside.resident.settings import ResidentSettings
from reside.resident.unheard import teach_sdk

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from pulumi.automation import OnOutput
    from semver import VersionInfo

_log = logging.getLogger(__name__)
_NON_INTERACTIVE = "--non-interactive"


class ResidentCommand(PulumiCommand):
    """Runs Pulumi commands on an engine that stays alive.

    Make one and share it between workspaces and threads; making it costs nothing, the engine starts with the first
    command. Commands that the engine does not serve (``config``, ``plugin``, programs that are not inline, ...) are
    run by the stock command line. The first one teaches the SDK of this process to keep debug messages back where the
    engine says that nobody would see them (:mod:`reside.resident.unheard`), and to share no connections between
    operations (:mod:`reside.resident.channels`).

    Args:
        settings: Which engine, and how long it lives.
        command: The stock command line: a name on PATH, or a path.
    """

    def __init__(self, settings: ResidentSettings | None = None, command: str = "pulumi") -> None:
        self.settings = settings or ResidentSettings()
        self.command = command
        self._engines: dict[str, Engine] = {}
        self._lock = threading.Lock()
        self._closed = False
        self._version: VersionInfo | None = None
        teach_sdk()
        keep_apart()

    @property
    def version(self) -> VersionInfo | None:  # type: ignore[override]  # an attribute there; here it is asked for once
        """Version of the engine; of the stock command line if no engine comes up and that is allowed.

        Raises:
            InvalidVersionError: The SDK needs a newer one.
        """
        if self._version is None:
            opt_out = os.getenv(_SKIP_VERSION_CHECK_VAR) is not None
            self._version = _parse_and_validate_pulumi_version(_MINIMUM_VERSION, self._ask_version(), opt_out)
        return self._version

    def run(
        self,
        args: list[str],
        cwd: str,
        additional_env: Mapping[str, str],
        on_output: OnOutput | None = None,
        on_error: OnOutput | None = None,
    ) -> CommandResult:
        """Run one command; see ``PulumiCommand.run``.

        The callbacks are called on this thread. One that raises does not stop the command; its error is raised after
        the command's end.

        Raises:
            CommandError: The command failed; :class:`reside.resident.EngineDied` if the engine ended in the middle.
            EngineUnavailable: No engine comes up, and there is to be no fallback.
        """
        arguments = _non_interactive(args)
        try:
            call = self.engine(additional_env).open(arguments, cwd)
        except Unserved:
            return super().run(arguments, cwd, additional_env, on_output, on_error)
        except EngineUnavailable as error:
            if not self.settings.fallback:
                raise
            _log.warning("the resident engine does not come up, the stock command line is used: %s", error)
            return super().run(arguments, cwd, additional_env, on_output, on_error)
        result = call.finish(on_output, on_error)
        if result.code != 0:
            raise create_command_error(result)
        return result

    def engine(self, additional_env: Mapping[str, str]) -> Engine:
        """The engine that runs commands with this environment; it need not run yet.

        Raises:
            EngineUnavailable: There is no binary, or this command was closed.
        """
        environment = command_environment(self.command, additional_env)
        binary = find_binary(self.settings.engine, environment)
        key = identity(binary, environment)
        with self._lock:
            if self._closed:
                raise EngineUnavailable("this command was closed")
            if key not in self._engines:
                self._engines[key] = Engine(self.settings, binary, environment)
            return self._engines[key]

    def close(self) -> None:
        """Run no more commands, and end the engines that belong to this object alone (lifetime ``parent``)."""
        with self._lock:
            self._closed = True
        for engine in self._engines.values():
            engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _ask_version(self) -> str:
        """The version of an engine that was used already, else the stock command line's: no engine is started."""
        with self._lock:
            engine = next(iter(self._engines.values()), None)
        if engine is not None:
            try:
                return str(engine.status()["version"]).removeprefix("v")
            except EngineUnavailable as error:
                _log.warning("the resident engine can't be asked for its version: %s", error)
        return super().run(["version"], ".", {}).stdout.strip().removeprefix("v")


def _non_interactive(args: list[str]) -> list[str]:
    """The arguments with the flag that forbids questions, before all others, as the base class does."""
    own = args[: args.index("--")] if "--" in args else args
    return args if _NON_INTERACTIVE in own else [_NON_INTERACTIVE, *args]
