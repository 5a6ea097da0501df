"""A session of processes: an engine or command line that we started, with its successors and plugins.

A session is ended as a whole: its members are killed until none is left, because one that was just being started while
we looked is only seen the next time. A process is named by a file descriptor while it is killed and waited for, so no
signal reaches another that got its number since.
"""

from __future__ import annotations

import os
import select
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess

KILL_SECONDS = 30.0


def end_session(leader: int, within: float = KILL_SECONDS) -> None:
    """End all processes of the session ``leader``; when this returns, none of them runs.

    Args:
        leader: Process id of the session's leader; it may have ended already.
        within: Seconds that the kernel has to end them all.

    Raises:
        TimeoutError: A process did not end; it hangs in the kernel.
    """
    deadline = time.monotonic() + within
    while members := session_members(leader):
        for pid in members:
            _kill(pid, leader, deadline)


def reap(process: subprocess.Popen[bytes]) -> None:
    """Wait for a session's leader, and for those of its members that became our children then.

    That happens where we are a container's first process: an engine's successor is orphaned when the engine ends.
    """
    process.wait()
    while adopted := [pid for pid in _processes() if _stat(pid)[1:] == (os.getpid(), process.pid)]:
        for pid in adopted:
            os.waitpid(pid, 0)


def session_members(leader: int) -> list[int]:
    """Process ids of the session ``leader`` that still run."""
    return [pid for pid in _processes() if _runs_in(pid, leader)]


def _processes() -> list[int]:
    return [int(folder.name) for folder in Path("/proc").glob("[0-9]*")]


def _stat(pid: int) -> tuple[bytes, int, int]:
    """State, parent and session of a process (proc(5)); state X, dead, if it ended while we looked."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b"X", 0, 0
    state, parent, _, session = stat.rpartition(b")")[2].split()[:4]
    return state, int(parent), int(session)


def _runs_in(pid: int, leader: int) -> bool:
    """Whether the process is one of the session's, and not a zombie."""
    state, _, session = _stat(pid)
    return state not in (b"Z", b"X") and session == leader


def _kill(pid: int, leader: int, deadline: float) -> None:
    with suppress(ProcessLookupError):
        process = os.pidfd_open(pid)
        try:
            if _runs_in(pid, leader):
                signal.pidfd_send_signal(process, signal.SIGKILL)
                # pidfd_open(2): readable when the process ended
                if not select.select([process], [], [], max(0.0, deadline - time.monotonic()))[0]:
                    raise TimeoutError(f"process {pid} did not end after SIGKILL, it hangs in the kernel")
        finally:
            os.close(process)
