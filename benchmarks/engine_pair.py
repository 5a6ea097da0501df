"""Measure resident engines with their providers from /proc: CPU seconds of all, memory of the largest.

Memory is the proportional set size: a page that several processes share is divided among them, for example a page of
the program that an engine and its successor run. The resident set size counts such a page for each process; it is
measured, too.
"""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_TICK = os.sysconf("SC_CLK_TCK")
_EVERY = 0.5
MIB = 1 << 20


class Pair:
    """The engines that this process started, each with its successors and providers, sampled by another thread.

    A process that ended keeps the CPU time of its last sample.

    Attributes:
        peak: largest proportional set size of one engine, in bytes; while a successor takes over, both count.
        peak_resident: the same as resident set size.
    """

    def __init__(self) -> None:
        self.peak = self.peak_resident = 0
        self._sessions: set[int] = set()
        self._seconds: dict[int, float] = {}
        self._lock = threading.Lock()

    @contextmanager
    def watched(self) -> Iterator[Pair]:
        """Sample until the end of the block."""
        over = threading.Event()

        def watch() -> None:
            while not over.wait(_EVERY):
                self.sample()

        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            over.set()
            thread.join()

    def cpu(self) -> float:
        """Return the CPU seconds so far."""
        with self._lock:
            self._measure_processes()
            return sum(self._seconds.values())

    def sample(self) -> None:
        """Take one sample of CPU time and memory."""
        with self._lock:
            found = self._measure_processes()
            shares, resident = dict.fromkeys(self._sessions, 0), dict.fromkeys(self._sessions, 0)
            for pid, session in found:
                memory = _memory(pid)
                shares[session] += memory.get("Pss", 0)
                resident[session] += memory.get("Rss", 0)
            self.peak = max([self.peak, *shares.values()])
            self.peak_resident = max([self.peak_resident, *resident.values()])

    def _measure_processes(self) -> list[tuple[int, int]]:
        """Record the CPU time of all engines and providers; return their process ids and sessions."""
        found = []
        for pid, parent, session, seconds, name in _processes():
            if parent == os.getpid() and name == "reside-engine":
                self._sessions.add(session)
            if session in self._sessions:  # a successor has another name until it renames itself
                self._seconds[pid] = seconds
                found.append((pid, session))
        return found


def _memory(pid: int) -> dict[str, int]:
    """Return sizes in bytes by name (proc(5), `smaps_rollup`); none if the process has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    except (FileNotFoundError, ProcessLookupError):
        return {}
    return {name: int(size.split()[0]) << 10 for name, size in (line.split(":") for line in lines)}


def _processes() -> Iterator[tuple[int, int, int, float, str]]:
    """Yield the process id, parent, session, CPU seconds and name of all processes (proc(5), `stat`)."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended in the meantime
        name, fields = stat[stat.index("(") + 1 : stat.rindex(")")], stat[stat.rindex(")") + 2 :].split()
        seconds = (int(fields[11]) + int(fields[12])) / _TICK
        yield int(folder.name), int(fields[1]), int(fields[3]), seconds, name
