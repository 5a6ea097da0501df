"""Creates the command runner of an engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reside.resident import Engine, EngineUnavailable, ResidentSettings
from reside.resident.environment import command_environment, find_binary
from reside.sentinel.engine import home
from reside.sentinel.engine.cli_runner import CliRunner
from reside.sentinel.engine.resident_runner import ResidentRunner, report_fallback

if TYPE_CHECKING:
    from reside.sentinel.engine.runner import CommandRunner
    from reside.sentinel.engine.settings import EngineSettings

_AFTER_DEADLINE = 60
"""Seconds for which an engine that has handed over waits for operations that their deadline should have ended."""
_OPERATIONS = 2000
"""Operations after which the engine hands over: those of declarations leave hardly anything in its memory."""


def create_runner(settings: EngineSettings) -> CommandRunner:
    """Prepare the folders of the engine, and return the runner that the settings select.

    If the binary of the resident engine is missing, the runner is the command line. No process starts before the first
    command.

    Raises:
        EngineBroken: the command line or the provider is missing.
    """
    home.prepare(settings)
    added = home.environment(settings)
    cli = CliRunner(settings.pulumi, added, settings.processes)
    if settings.engine == "cli":
        return cli
    environment = command_environment(settings.pulumi, added)
    resident = ResidentSettings(
        settings.resident,
        "parent",
        settings.folder / "resident",
        max_operations=_OPERATIONS,
        max_drain_seconds=int(settings.deadline) + _AFTER_DEADLINE,
    )
    try:
        engine = Engine(resident, find_binary(settings.resident, environment), environment)
    except EngineUnavailable as error:
        report_fallback(error)
        return cli
    return ResidentRunner(engine, cli)
