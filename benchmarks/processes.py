"""CPU time, memory and children of processes, from /proc."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def cpu_s(pid: int) -> float:
    """Return the CPU time that a process has used, in seconds; 0 if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mib(pid: int) -> float:
    """Return the resident memory of a process, in MiB; 0 if it has ended."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except FileNotFoundError:
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def processes_of(folder: Path) -> dict[int, str]:
    """Return the processes whose environment names a path in a folder: process id → name.

    A resident engine starts its successor, so parents do not tell whose engine it is.
    """
    named = f"={folder}/".encode()
    result: dict[int, str] = {}
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(FileNotFoundError, ProcessLookupError, PermissionError):  # it ended while we looked
            if named in (path / "environ").read_bytes():
                result[int(path.name)] = (path / "comm").read_text().strip()
    return result
