"""The bootstrap's provider process, and the replicas in it, never outlive the engine that started them.

A killed engine does not take its dynamic provider's process along, and Alpha and the Sentinel in there would go on,
with leases that the next run waits for. So a thread looks for the engine once a second, and ends the process without.
"""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

ENGINE = "pulumi"
_ENDED = ("Z", "X")
"""States of proc(5): a zombie, and dead."""
_INTERVAL = 1.0
_EXIT_CODE = 70
_started = threading.Lock()


def is_engine(processes: Path, pid: int | str) -> bool:
    """Whether an engine runs under this process id; one that has ended and was not reaped does not run."""
    try:
        stat = (processes / str(pid) / "stat").read_text()
    except OSError:
        return False
    name, _, rest = stat.partition("(")[2].rpartition(")")
    return name == ENGINE and rest.split()[0] not in _ENDED


def engine_above(processes: Path = Path("/proc"), pid: int | None = None) -> int | None:
    """Process id of the nearest ancestor that is Pulumi's engine; None if there is none (a test, a shell)."""
    current = os.getpid() if pid is None else pid
    while current > 1:
        current = _parent(processes, current)
        if is_engine(processes, current):
            return current
    return None


def end_with_engine() -> None:
    """From now on this process ends when the engine above it is gone; further calls do nothing."""
    if not _started.acquire(blocking=False):
        return
    engine = engine_above()
    if engine is not None:
        threading.Thread(target=_watch, args=(engine,), name="engine guard", daemon=True).start()


def _watch(engine: int) -> None:
    while is_engine(Path("/proc"), engine):
        time.sleep(_INTERVAL)
    os._exit(_EXIT_CODE)


def _parent(processes: Path, pid: int) -> int:
    stat = (processes / str(pid) / "stat").read_text()
    return int(stat.rpartition(")")[2].split()[1])  # the name may hold spaces and brackets
