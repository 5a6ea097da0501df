"""A session of processes: a worker, the engine that it started, and that one's plugins.

A session is ended as a whole: its members are killed until none is left, because one that was just being started while
we looked is only seen the next time. A process is named by a file descriptor while it is killed and waited for, so no
signal reaches another that got its number since.
"""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path

from reside.sentinel.engine.errors import EngineUnavailable

KILL_SECONDS = 30.0


async def kill_session(leader: int, within: float = KILL_SECONDS) -> None:
    """End all processes of the session ``leader``; when this returns, none of them runs.

    Args:
        leader: Process id of the session's leader; it may have ended already.
        within: Seconds that the kernel has to end them all.

    Raises:
        EngineUnavailable: A process did not end; it hangs in the kernel.
    """
    try:
        async with asyncio.timeout(within):
            while members := session_members(leader):
                await asyncio.gather(*(_kill(pid, leader) for pid in members))
    except TimeoutError as error:
        message = f"these processes did not end after SIGKILL, they hang in the kernel: {session_members(leader)}"
        raise EngineUnavailable(message) from error


def session_members(leader: int) -> list[int]:
    """Process ids of the session ``leader`` that still run."""
    found = (int(folder.name) for folder in Path("/proc").glob("[0-9]*"))
    return [pid for pid in found if _runs_in(pid, leader)]


def _runs_in(pid: int, leader: int) -> bool:
    """Whether the process is one of the session's, and not a zombie (proc(5): state and session in ``stat``)."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False  # it ended while we looked
    state, _, _, session = stat.rpartition(b")")[2].split()[:4]
    return state not in (b"Z", b"X") and int(session) == leader


async def _kill(pid: int, leader: int) -> None:
    with suppress(ProcessLookupError):
        process = os.pidfd_open(pid)
        try:
            if _runs_in(pid, leader):
                signal.pidfd_send_signal(process, signal.SIGKILL)
                await _readable(process)  # pidfd_open(2): readable when the process ended
        finally:
            os.close(process)


async def _readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(descriptor, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(descriptor)
