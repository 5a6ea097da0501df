"""Identify processes, and check in /proc whether they are alive.

The kernel reuses pids. So a process is identified by its pid, its start time and the machine's boot id. A zombie is not
alive, unless threads of it still run: the kernel shows a process as a zombie as soon as its first thread has ended, but
its ports and files stay open until the last one has.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PROC: Final = Path("/proc")
_DEAD: Final = frozenset("ZXx")
"""States of proc(5): zombie and dead."""


@dataclass(frozen=True)
class ProcessId:
    """Unique identity of a process.

    Attributes:
        pid: the process id.
        start: its start time in clock ticks after boot.
        boot: the machine's boot id.
    """

    pid: int
    start: int
    boot: str


@dataclass(frozen=True)
class Stat:
    """The content of a process's `stat` file (proc(5)).

    Attributes:
        name: the command's name, up to 15 bytes; bytes that are not UTF-8 are replaced.
        fields: the fields after the name, beginning with the state.
    """

    name: str
    fields: tuple[str, ...]

    @property
    def alive(self) -> bool:
        """Whether a thread of the process still runs."""
        return self.fields[0] not in _DEAD or self.threads > 1

    @property
    def parent(self) -> int:
        """Process id of the parent."""
        return int(self.fields[1])

    @property
    def session(self) -> int:
        """Process id of the session leader."""
        return int(self.fields[3])

    @property
    def threads(self) -> int:
        """Number of threads, with the first one also after it has ended."""
        return int(self.fields[17])

    @property
    def start(self) -> int:
        """Start time in clock ticks after boot."""
        return int(self.fields[19])


def read_stat(pid: int | str, processes: Path = PROC) -> Stat | None:
    """Return the content of a process's `stat` file; None if there is no process with this pid.

    Args:
        pid: the process id.
        processes: mount point of proc; another folder in tests.
    """
    try:
        text = (processes / str(pid) / "stat").read_text(errors="replace")  # a command's name may contain any bytes
    except (FileNotFoundError, NotADirectoryError, ProcessLookupError):
        return None
    name, _, rest = text.partition("(")[2].rpartition(")")  # the name may contain spaces and parentheses
    return Stat(name, tuple(rest.split()))


def resident_memory(pid: int, processes: Path = PROC) -> int:
    """Return the bytes of memory that the children of a process, their children and so on have in RAM together.

    Memory that they share is counted for each of them.

    Args:
        pid: the process id of the parent, whose own memory does not count.
        processes: mount point of proc; another folder in tests.
    """
    stats = {int(each.name): read_stat(each.name, processes) for each in processes.iterdir() if each.name.isdecimal()}
    children: dict[int, list[int]] = {}
    for child, stat in stats.items():
        if stat is not None:
            children.setdefault(stat.parent, []).append(child)
    pages, left = 0, list(children.get(pid, ()))
    while left:
        child = left.pop()
        stat = stats[child]
        pages += int(stat.fields[21]) if stat is not None else 0
        left += children.get(child, ())
    return pages * os.sysconf("SC_PAGE_SIZE")


def boot_id() -> str:
    """Return the id of this boot of the machine."""
    return (PROC / "sys/kernel/random/boot_id").read_text().strip()


def identify(pid: int) -> ProcessId | None:
    """Return the identity of the process with this pid; None if none is alive."""
    stat = read_stat(pid)
    return ProcessId(pid, stat.start, boot_id()) if stat is not None and stat.alive else None


def is_alive(process: ProcessId) -> bool:
    """Return whether this process is alive; another process with the same pid does not count."""
    return identify(process.pid) == process


def is_pid_alive(pid: int | str, processes: Path = PROC, *, name: str | None = None) -> bool:
    """Return whether a process with this pid is alive, for callers that know only the pid.

    Args:
        pid: the process id.
        processes: mount point of proc; another folder in tests.
        name: the required name of the command; None: any.
    """
    stat = read_stat(pid, processes)
    return stat is not None and stat.alive and name in (None, stat.name)
