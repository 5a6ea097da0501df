"""A replica as a process: signals, graceful stop, exit codes.

Kubernetes sends new connections to a pod for some time after it has decided to stop it. The hook `preStop` of the pod
delays SIGTERM for that (`reside.alpha.stacks.workload`); on a busy node it may take longer. So the process goes on
until no call has arrived for a moment: a connection that is not accepted before the end is an error of its caller.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

import structlog
from pydantic import ValidationError

from reside.common import tracing
from reside.replica.lifecycle import started
from reside.replica.logs import configure_logs
from reside.replica.settings import ReplicaSettings, environment_faults

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reside.replica.context import Context
    from reside.replica.declaration import Declaration
    from reside.replica.health import Health

_log = structlog.get_logger(__name__)

QUIET_S = 0.5
"""Seconds without a new call after which a stopping process ends."""
LONGEST_DRAIN_S = 5.0
"""Seconds for which it takes calls at most."""
EXIT_FAILED = 1
EXIT_BAD_SETTINGS = 2


async def run(declaration: Declaration, settings: ReplicaSettings | None = None) -> None:
    """See `Replica.run`."""
    chosen = settings if settings is not None else ReplicaSettings()  # type: ignore[call-arg]  # from the environment
    stop = asyncio.Event()
    with _set_by_signals(stop):
        work = asyncio.create_task(_work(declaration, chosen), name=f"replica {chosen.replica_name}")
        stopped = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait({work, stopped}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopped.cancel()
            work.cancel()
            await asyncio.wait({work})
    if not work.cancelled():
        work.result()


async def _work(declaration: Declaration, settings: ReplicaSettings) -> None:
    async with started(declaration, settings) as context:
        try:
            await _main(declaration, context)
        except asyncio.CancelledError:
            context.health.draining = True
            _log.info("stopping", replica=context.name)
            await until_quiet(context.health)
            raise


async def until_quiet(health: Health) -> None:
    """Wait until no call has arrived for `QUIET_S`, for `LONGEST_DRAIN_S` at most."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + LONGEST_DRAIN_S
    while loop.time() < deadline:
        rest = health.last_call_at + QUIET_S - loop.time()
        if rest <= 0:
            return
        await asyncio.sleep(rest)


async def _main(declaration: Declaration, context: Context) -> None:
    if declaration.main is None:
        await asyncio.Event().wait()  # serve until cancelled
    else:
        await declaration.main(context)


@contextmanager
def _set_by_signals(stop: asyncio.Event) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    signals = (signal.SIGTERM, signal.SIGINT)
    for number in signals:
        loop.add_signal_handler(number, stop.set)
    try:
        yield
    finally:
        for number in signals:
            loop.remove_signal_handler(number)


def launch(declaration: Declaration, settings_type: type[ReplicaSettings] | None = None) -> NoReturn:
    """See `Replica.launch`."""
    try:
        settings = (settings_type or ReplicaSettings)()  # type: ignore[call-arg]  # from the environment
    except ValidationError as error:
        sys.stderr.write(f"the environment of this replica is invalid: {environment_faults(error)}\n")
        sys.exit(EXIT_BAD_SETTINGS)
    configure_logs(settings.replica_name)
    tracing.enable(settings.replica_name)
    try:
        asyncio.run(run(declaration, settings))
    except Exception:  # noqa: BLE001 - the outermost handler: log as JSON what Python would print
        _log.exception("replica failed")
        sys.exit(EXIT_FAILED)
    finally:
        tracing.disable()
    sys.exit(0)
