"""What the operations of one Sentinel share: the runner of commands. Imports pulumi."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reside.resident import Engine, EngineUnavailable, ResidentSettings
from reside.resident.environment import command_environment, find_binary
from reside.sentinel.engine import home
from reside.sentinel.engine.cli import CliRunner
from reside.sentinel.engine.operations import Operations
from reside.sentinel.engine.resident import ResidentRunner, warn
from reside.sentinel.engine.running import Operator

if TYPE_CHECKING:
    from reside.sentinel.engine.running import Runner
    from reside.sentinel.engine.settings import EngineSettings


class Machine:
    """Makes operators and operations."""

    def __init__(self, settings: EngineSettings) -> None:
        """Make folders and look for binaries; engines start with the first command.

        Raises:
            EngineBroken: A binary is missing.
        """
        home.prepare(settings)
        self._settings = settings
        self._runner = _runner(settings)

    def operator(self) -> Operator:
        """For one operation."""
        return Operator(self._runner)

    def operations(self, operator: Operator) -> Operations:
        """One operation by this operator."""
        return Operations(self._settings, operator)

    def close(self) -> None:
        """End what stays alive between operations."""
        self._runner.close()


def _runner(settings: EngineSettings) -> Runner:
    """The runner that the settings ask for, or the command line if there is no resident engine."""
    environment = home.environment(settings)
    stock = CliRunner(settings.pulumi, environment, settings.processes)
    if settings.engine == "cli":
        return stock
    whole = command_environment(settings.pulumi, environment)
    resident = ResidentSettings(settings.resident, "parent", settings.folder / "resident")
    try:
        return ResidentRunner(Engine(resident, find_binary(settings.resident, whole), whole), stock)
    except EngineUnavailable as error:
        warn(error)
        return stock
