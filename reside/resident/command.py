"""A `PulumiCommand` that runs commands in a resident engine instead of starting the `pulumi` binary."""

from __future__ import annotations

import logging
import os
import threading
from typing import TYPE_CHECKING, Self

from pulumi.automation import CommandResult, PulumiCommand
from pulumi.automation.errors import CommandError, create_command_error
from semver import VersionInfo

from reside.resident.engine import Engine
from reside.resident.environment import command_environment, find_binary, identity
from reside.resident.errors import EngineEnded, EngineUnavailable, Unserved
from reside.resident.patches import install_patches, is_tested_sdk
from reside.resident.settings import ResidentSettings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from pulumi.automation import OnOutput

_log = logging.getLogger(__name__)
_NON_INTERACTIVE = "--non-interactive"


class EngineDied(CommandError):  # noqa: N818 - named after what is wrong
    """The engine ended during a command.

    Attributes:
        result: the output until then.
    """

    def __init__(self, result: CommandResult) -> None:
        super().__init__(result)
        self.result = result


class ResidentCommand(PulumiCommand):
    """A `PulumiCommand` that runs commands in a resident engine.

    Create one and share it between workspaces and threads. The engine starts with the first command. The stock command
    line runs the commands that the engine does not serve, such as `config`, `plugin`, and programs that are not inline.
    Creating the first one in a process installs the patches of Pulumi's SDK that the settings enable. With another
    version of the SDK than the tested one, the stock command line runs all commands (see `reside.resident.patches`).

    Args:
        settings: the settings of the engine.
        command: the name or path of the stock command line.
    """

    def __init__(self, settings: ResidentSettings | None = None, command: str = "pulumi") -> None:
        self.settings = settings or ResidentSettings()
        self.command = command
        self._engines: dict[str, Engine] = {}
        self._lock = threading.Lock()
        self._closed = False
        self._version: VersionInfo | None = None
        self._is_tested = is_tested_sdk()
        if self._is_tested:
            install_patches(self.settings)

    @property
    def version(self) -> VersionInfo | None:  # type: ignore[override]  # an attribute there; here it is computed once
        """The version of the engine; without an engine, the version of the stock command line.

        Raises:
            InvalidVersionError: the SDK needs a newer version.
        """
        if self._version is None:
            text = self._read_version()
            self._version = _validated(text) if self._is_tested else VersionInfo.parse(text)
        return self._version

    def run(
        self,
        args: list[str],
        cwd: str,
        additional_env: Mapping[str, str],
        on_output: OnOutput | None = None,
        on_error: OnOutput | None = None,
    ) -> CommandResult:
        """Run one command; see `PulumiCommand.run`.

        The callbacks are called on this thread. If one raises, the command continues, and the error is raised when the
        command has ended.

        Raises:
            CommandError: the command failed; it is `EngineDied` if the engine exited during the command.
            EngineUnavailable: the engine cannot be started, and the settings allow no fallback.
        """
        arguments = _non_interactive(args)
        if not self._is_tested:
            return super().run(arguments, cwd, additional_env, on_output, on_error)
        try:
            call = self.engine(additional_env).open(arguments, cwd)
        except Unserved:
            return super().run(arguments, cwd, additional_env, on_output, on_error)
        except EngineUnavailable as error:
            if not self.settings.fallback:
                raise
            _log.warning("the resident engine does not start; the stock command line is used: %s", error)
            return super().run(arguments, cwd, additional_env, on_output, on_error)
        try:
            result = CommandResult(*call.finish(on_output, on_error))
        except EngineEnded as ended:
            raise EngineDied(CommandResult(*ended.result)) from None
        if result.code != 0:
            raise create_command_error(result)
        return result

    def engine(self, additional_env: Mapping[str, str]) -> Engine:
        """Return the engine for this environment, without starting it.

        Raises:
            EngineUnavailable: the binary is missing, or this object was closed.
        """
        environment = command_environment(self.command, additional_env, self.settings.session_variables)
        binary = find_binary(self.settings.engine, environment)
        key = identity(binary, environment)
        with self._lock:
            if self._closed:
                raise EngineUnavailable("this ResidentCommand was closed")
            if key not in self._engines:
                self._engines[key] = Engine(self.settings, binary, environment)
            return self._engines[key]

    def close(self) -> None:
        """Refuse further commands, and end the engines that belong to this object alone (lifetime `parent`)."""
        with self._lock:
            self._closed = True
        for engine in self._engines.values():
            engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _read_version(self) -> str:
        """Return the version of an engine that was used, or else of the stock command line; starts no engine."""
        with self._lock:
            engine = next(iter(self._engines.values()), None)
        if engine is not None:
            try:
                return str(engine.status()["version"]).removeprefix("v")
            except EngineUnavailable as error:
                _log.warning("the version of the resident engine cannot be read: %s", error)
        return super().run(["version"], ".", {}).stdout.strip().removeprefix("v")


def _validated(version: str) -> VersionInfo | None:
    """Return a version of the engine, as the SDK does.

    Raises:
        InvalidVersionError: the SDK needs a newer version.
    """
    # Imported here, because other versions of the SDK may not have these private parts.
    from pulumi.automation._cmd import _parse_and_validate_pulumi_version  # noqa: PLC0415
    from pulumi.automation._env import _SKIP_VERSION_CHECK_VAR  # noqa: PLC0415
    from pulumi.automation._minimum_version import _MINIMUM_VERSION  # noqa: PLC0415

    opt_out = os.getenv(_SKIP_VERSION_CHECK_VAR) is not None
    return _parse_and_validate_pulumi_version(_MINIMUM_VERSION, version, opt_out)


def _non_interactive(args: list[str]) -> list[str]:
    """Return the arguments, with the flag that forbids prompts first, as the base class does."""
    own = args[: args.index("--")] if "--" in args else args
    return args if _NON_INTERACTIVE in own else [_NON_INTERACTIVE, *args]
