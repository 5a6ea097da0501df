"""The errors of this package.

    EngineUnavailable          no engine runs and none can be started; check settings and machine
    EngineEnded                the engine ended during the command; callers of `ResidentCommand` get `EngineDied`
    CommandError               Pulumi's own: the command failed, as on the stock command line
    └── EngineDied             the engine ended during the command; the next operation finds out what was done
    Unserved                   the stock command line must run this command; callers of `ResidentCommand` never see it

Pulumi's SDK is not imported here, so `EngineDied` is in `reside.resident.command`.

Invariant: no message contains a value of the environment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reside.resident.output import Output

DIED = -9
"""The exit code of a command whose engine ended, as if the command line had been killed."""


class EngineUnavailable(Exception):  # noqa: N818 - named after what is wrong
    """The resident engine cannot be started; the message names the cause and the log."""


class EngineEnded(Exception):  # noqa: N818 - as above
    """The engine ended during a command.

    Attributes:
        result: the output until then, and why.
    """

    def __init__(self, result: Output) -> None:
        super().__init__(result.stderr)
        self.result = result


class Unserved(Exception):  # noqa: N818 - as above
    """The engine does not serve this command and has done nothing; the message says why."""
