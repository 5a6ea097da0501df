"""A session of processes: an engine or command line that was started here, with its successors and plugins.

A session is ended as a whole. Members are killed until none remains, because a process that starts during a pass is
found only in the next pass. A process is referred to by a file descriptor while it is killed, so no signal reaches
another process that got the same id.
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
    """Kill all processes of a session, and wait until they have ended.

    Args:
        leader: the process id of the session's leader, which may have ended.
        within: the time in seconds for all processes to end.

    Raises:
        TimeoutError: a process did not end, because it is blocked in the kernel.
    """
    deadline = time.monotonic() + within
    while members := session_members(leader):
        for pid in members:
            _kill(pid, leader, deadline)


def reap(process: subprocess.Popen[bytes]) -> None:
    """Wait for the leader of a session to exit, and then for its members that have become children of this process.

    When an engine exits, its successor becomes a child of the container's first process, which may be this process.
    """
    process.wait()
    while adopted := [pid for pid in _processes() if _stat(pid)[1:] == (os.getpid(), process.pid)]:
        for pid in adopted:
            os.waitpid(pid, 0)


def session_members(leader: int) -> list[int]:
    """Return the ids of the running processes of a session."""
    return [pid for pid in _processes() if _runs_in(pid, leader)]


def _processes() -> list[int]:
    return [int(folder.name) for folder in Path("/proc").glob("[0-9]*")]


def _stat(pid: int) -> tuple[bytes, int, int]:
    """Return state, parent and session of a process (proc(5)); the state is X (dead) if the process has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b"X", 0, 0
    state, parent, _, session = stat.rpartition(b")")[2].split()[:4]
    return state, int(parent), int(session)


def _runs_in(pid: int, leader: int) -> bool:
    """Return whether the process belongs to the session and is not a zombie."""
    state, _, session = _stat(pid)
    return state not in (b"Z", b"X") and session == leader


def _kill(pid: int, leader: int, deadline: float) -> None:
    with suppress(ProcessLookupError):
        process = os.pidfd_open(pid)
        try:
            if _runs_in(pid, leader):
                signal.pidfd_send_signal(process, signal.SIGKILL)
                # pidfd_open(2): readable when the process has ended
                if not select.select([process], [], [], max(0.0, deadline - time.monotonic()))[0]:
                    raise TimeoutError(f"process {pid} did not end after SIGKILL; it is blocked in the kernel")
        finally:
            os.close(process)
