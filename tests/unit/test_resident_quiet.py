"""A quiet program keeps the SDK's debug messages back and nothing else."""

from __future__ import annotations

import asyncio
import contextvars
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pulumi
import pytest
from pulumi.runtime.settings import SETTINGS, get_engine

from reside.resident import quiet

if TYPE_CHECKING:
    from collections.abc import Callable


def talk() -> None:
    """Say something of each severity."""
    for say in (pulumi.log.debug, pulumi.log.info, pulumi.log.warn, pulumi.log.error):
        say(say.__name__)


async def talk_later() -> None:
    """The same, as a program that is awaited."""
    talk()


def told(program: Callable[[], Any]) -> list[str]:
    """What an engine hears of a program, in a context of its own as the SDK gives it one."""
    heard: list[str] = []
    engine = SimpleNamespace(Log=lambda request: heard.append(request.message), other="the engine's")

    async def run() -> None:
        SETTINGS.engine = engine
        made = program()
        if made is not None:
            await made
        assert get_engine().other == "the engine's"  # type: ignore[union-attr] # it was set above

    contextvars.copy_context().run(asyncio.run, run())
    return heard


@pytest.mark.parametrize("program", [talk, talk_later])
def test_debug_messages_are_kept_back_for_the_quiet_program_only(program: Callable[[], Any]) -> None:
    for _ in range(2):  # each time beside another program of the process
        assert told(program) == ["debug", "info", "warn", "error"]
        assert told(quiet(program)) == ["info", "warn", "error"]
    assert quiet(program).__name__ == program.__name__


def test_without_an_engine_it_runs_as_ever(capsys: pytest.CaptureFixture[str]) -> None:
    def run() -> None:
        SETTINGS.engine = None
        quiet(talk)()

    contextvars.copy_context().run(run)
    assert capsys.readouterr().err == "info: info\nwarning: warn\nerror: error\n"
