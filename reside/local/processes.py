"""What the kernel says about processes: pure reading of /proc.

A process is known by its pid, its start time and the machine's boot, so that a pid that was given out again is never
mistaken for the process that had it before. Every process that we start carries the instance's state folder in its
environment (`MARK`), and its children inherit it: so nothing of an instance is ever lost, even if our records are.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MARK = "RESIDE_LOCAL_INSTANCE"
_PROC = Path("/proc")
_STATE_FIELD = 0
_SESSION_FIELD = 3
_START_FIELD = 19  # field 22 of stat(5), counted after the command's closing parenthesis
_DEAD = frozenset("ZXx")


@dataclass(frozen=True)
class ProcessId:
    """One process and no other.

    Args:
        pid: The process id.
        start: Its start in clock ticks after boot.
        boot: The machine's boot id.
    """

    pid: int
    start: int
    boot: str


def boot_id() -> str:
    """Return the id of this boot of the machine."""
    return (_PROC / "sys/kernel/random/boot_id").read_text().strip()


def identify(pid: int) -> ProcessId | None:
    """Return the identity of the living process with this pid; None if there is none (a zombie is none)."""
    fields = _stat(pid)
    if fields is None or fields[_STATE_FIELD] in _DEAD:
        return None
    return ProcessId(pid, int(fields[_START_FIELD]), boot_id())


def is_alive(process: ProcessId) -> bool:
    """Tell whether exactly this process runs."""
    return identify(process.pid) == process


def marked(state: Path) -> Iterator[ProcessId]:
    """Yield every living process that carries the mark of this state folder."""
    needle = f"{MARK}={state}".encode()
    for pid in _all_pids():
        process = identify(pid)
        if process is not None and needle in _environment(pid):
            yield process


def leads_session(pid: int) -> bool:
    """Tell whether the process leads a session: of our processes, those that we started and none of their children."""
    stat = _stat(pid)
    return stat is not None and int(stat[_SESSION_FIELD]) == pid


def _stat(pid: int) -> list[str] | None:
    """Return the fields of stat(5) from the state on; None if there is no such process."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text(errors="replace")  # a command's name may be any bytes
    except (FileNotFoundError, ProcessLookupError):
        return None
    return stat.rpartition(")")[2].split()


def _all_pids() -> list[int]:
    return [int(path.name) for path in _PROC.iterdir() if path.name.isdigit()]


def _environment(pid: int) -> list[bytes]:
    try:
        return (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return []  # gone in the meantime, or of another user and so not ours
