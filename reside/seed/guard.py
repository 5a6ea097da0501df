"""The seed's replicas never outlive the engine that started them.

A killed engine does not take its dynamic provider's process along, and Alpha and the Sentinel in there would go on,
with leases that the next run waits for. So a thread looks for the engine once a second, and ends the process without.
"""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

ENGINE = "pulumi"
_INTERVAL = 1.0
_EXIT_CODE = 70
_started = threading.Lock()


def engine_above(processes: Path = Path("/proc"), pid: int | None = None) -> int | None:
    """Process id of the nearest ancestor that is Pulumi's engine; None if there is none (a test, a shell)."""
    current = os.getpid() if pid is None else pid
    while current > 1:
        current = _parent(processes, current)
        if current > 1 and (processes / str(current) / "comm").read_text().strip() == ENGINE:
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
    while (Path("/proc") / str(engine)).exists():
        time.sleep(_INTERVAL)
    os._exit(_EXIT_CODE)


def _parent(processes: Path, pid: int) -> int:
    stat = (processes / str(pid) / "stat").read_text()
    return int(stat.rpartition(")")[2].split()[1])  # the name may hold spaces and brackets
