"""Find the processes of a local cluster by a mark in their environment.

Every process that this package starts has the state folder in its environment (`MARK`), and its children inherit it.
So all processes of a local cluster are found, even without a record of them.
"""

from collections.abc import Iterator
from pathlib import Path

from reside.common.processes import PROC, ProcessId, identify, read_stat

MARK = "RESIDE_LOCAL_INSTANCE"


def marked(state: Path) -> Iterator[ProcessId]:
    """Yield every running process with the mark of this state folder."""
    entry = f"{MARK}={state}".encode()
    for pid in _all_pids():
        process = identify(pid)
        if process is not None and entry in _environment(pid):
            yield process


def leads_session(pid: int) -> bool:
    """Return whether a process leads a session: of a local cluster, only the processes that this package starts do."""
    stat = read_stat(pid)
    return stat is not None and stat.session == pid


def _all_pids() -> list[int]:
    return [int(path.name) for path in PROC.iterdir() if path.name.isdigit()]


def _environment(pid: int) -> list[bytes]:
    try:
        return (PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return []  # the process ended, or belongs to another user and therefore not to this local cluster
