"""The Sentinel as a process: `python -m reside.sentinel`. The first SIGTERM or SIGINT stops it gracefully."""

from __future__ import annotations

import asyncio
import signal
import sys

import structlog
from pydantic import ValidationError

from reside.common import tracing
from reside.common.collector import Freezer
from reside.model.errors import ResideError
from reside.replica.logs import configure_logs
from reside.replica.process import EXIT_BAD_SETTINGS, EXIT_FAILED
from reside.replica.settings import environment_faults
from reside.sentinel.app import Sentinel
from reside.sentinel.settings import SentinelSettings

_log = structlog.get_logger(__name__)


async def run(settings: SentinelSettings) -> None:
    """Run the Sentinel until SIGTERM or SIGINT."""
    sentinel, loop = Sentinel(settings), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, sentinel.stop)
    await sentinel.run()


def main() -> int:
    """Read the environment and run; return the exit code."""
    try:
        settings = SentinelSettings()  # type: ignore[call-arg]  # from the environment
    except ValidationError as error:
        sys.stderr.write(f"the Sentinel's environment is incomplete: {environment_faults(error)}\n")
        return EXIT_BAD_SETTINGS
    configure_logs(settings.replica_name)
    tracing.enable(settings.replica_name)
    Freezer().install()  # what the imports made stays, and most of what is kept of the stacks
    try:
        asyncio.run(run(settings))
    except ResideError as error:
        _log.error("the Sentinel can't run", error=str(error))
        return EXIT_FAILED
    except Exception:  # noqa: BLE001 - the outermost edge: log as JSON what Python would print
        _log.exception("the Sentinel failed")
        return EXIT_FAILED
    finally:
        tracing.disable()
    return 0


if __name__ == "__main__":
    sys.exit(main())
