"""The Sentinel as a process of its own, as its pod runs it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from reside.sentinel.settings import SentinelSettings

ROOT = Path(__file__).parents[3]


@asynccontextmanager
async def process(chosen: SentinelSettings) -> AsyncIterator[asyncio.subprocess.Process]:
    """Yield the Sentinel as its pod runs it; its log goes to its state folder."""
    values = {
        name: value.get_secret_value() if hasattr(value, "get_secret_value") else value
        for name, value in chosen
        if value is not None
    }
    values["etcd_hosts"] = ",".join(chosen.etcd_hosts)
    environment = {f"RESIDE_{name.upper()}": str(value) for name, value in values.items()}
    log = chosen.state_dir.with_suffix(".log")
    with log.open("ab") as out:
        started = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "reside.sentinel", cwd=ROOT, env={**os.environ, **environment}, stdout=out, stderr=out
        )
    try:
        yield started
    finally:
        if started.returncode is None:
            started.kill()
            await started.wait()


def kill_pod(pid: int) -> None:
    """Kill a process and all its descendants, as the end of a container does."""
    for each in descendants(pid):
        with suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)


def descendants(pid: int) -> list[int]:
    """Return a process and all its descendants."""
    found, parents = [pid], _parents()
    for each in found:
        found += [child for child, parent in parents.items() if parent == each]
    return found


def _parents() -> dict[int, int]:
    """Return the parent of each process."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has just ended
            found[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
    return found
