"""Logs of libraries in the process of the command: they go to standard error, and retries are not logged.

The libraries take a tenth of a second to import, and most commands need none of them. So they are set up once the
command has imported one, and before a call imports them.
"""

from __future__ import annotations

import logging
import sys
from typing import Final

_LIBRARIES: Final = frozenset({"stamina", "structlog"})
_wanted = False


def want(*, wanted: bool = True) -> None:
    """Say whether this process is that of the command; in others, `set_up` does nothing."""
    global _wanted  # noqa: PLW0603 - libraries log for the whole process
    _wanted = wanted
    if wanted:
        logging.getLogger("opentelemetry").addHandler(logging.NullHandler())  # one message at the end is enough


def set_up_if_imported() -> None:
    """Set the libraries up if one of them is imported."""
    if not _LIBRARIES.isdisjoint(sys.modules):
        set_up()


def set_up() -> None:
    """Set the libraries up."""
    if not _wanted:
        return
    import stamina.instrumentation  # noqa: PLC0415 - see above
    import structlog  # noqa: PLC0415

    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    stamina.instrumentation.set_on_retry_hooks([])  # the error of the last attempt is printed
