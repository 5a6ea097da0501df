"""Make the bootstrap's provider process, and the replicas in it, exit with the engine that started it.

Killing Pulumi's engine does not kill its dynamic provider process. Alpha and the Sentinel in that process would renew
their leases, and the next run would wait for the leases. So a thread checks once a second whether the engine runs.
"""

from __future__ import annotations

import math
import os
import threading
from pathlib import Path

from reside.common.backoff import Backoff
from reside.common.polling import wait_until
from reside.common.processes import is_pid_alive, read_stat

ENGINE = "pulumi"
_INTERVAL = Backoff(first=1.0, longest=1.0)
_EXIT_CODE = 70
_started = threading.Lock()


def is_engine(processes: Path, pid: int | str) -> bool:
    """Return whether the process with this pid is a running engine; a zombie is not."""
    return is_pid_alive(pid, processes, name=ENGINE)


def find_engine(processes: Path = Path("/proc"), pid: int | None = None) -> int | None:
    """Return the pid of the nearest ancestor that is Pulumi's engine; None if there is none, as in a test."""
    current = os.getpid() if pid is None else pid
    while current > 1:
        stat = read_stat(current, processes)
        if stat is None:
            return None
        current = stat.parent
        if is_engine(processes, current):
            return current
    return None


def exit_with_engine() -> None:
    """Exit this process as soon as the engine that started it has exited; only the first call has an effect."""
    if not _started.acquire(blocking=False):
        return
    engine = find_engine()
    if engine is not None:
        threading.Thread(target=_watch, args=(engine,), name="engine watch", daemon=True).start()


def _watch(engine: int) -> None:
    wait_until(lambda: not is_engine(Path("/proc"), engine), math.inf, _INTERVAL)
    os._exit(_EXIT_CODE)
