"""What can go wrong between a command and the resident engine.

    EngineUnavailable          no engine runs and none comes up: the caller's settings or machine
    CommandError               pulumi's own: the command failed, as with the stock command line
    └── EngineDied             the engine ended in the middle; what it had done is found out by the next operation
    Unserved                   not an error of the user: the stock command line must run this command

Invariant: no text holds a value of the environment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulumi.automation.errors import CommandError

if TYPE_CHECKING:
    from pulumi.automation import CommandResult

DIED = -9
"""The result's code where the engine ended in the middle: what a killed command line's process has."""


class EngineUnavailable(Exception):  # noqa: N818 - named after what is wrong
    """The resident engine does not come up; the text says why, and where its log is."""


class EngineDied(CommandError):  # noqa: N818 - as above
    """The engine ended in the middle of a command; ``result`` has what it had said until then."""

    def __init__(self, result: CommandResult) -> None:
        super().__init__(result)
        self.result = result


class Unserved(Exception):  # noqa: N818 - as above
    """The engine does not serve this command, and has done nothing; the text says why."""
