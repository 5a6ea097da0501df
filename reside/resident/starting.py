"""Starts an engine: one at a time in a folder, in a session of its own, with its output in `engine.log`."""

from __future__ import annotations

import fcntl
import os
import select
import subprocess
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from reside.resident.errors import EngineUnavailable
from reside.resident.sessions import end_session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from reside.resident.settings import ResidentSettings

LOG: Final = "engine.log"
_LOCK = "start.lock"
_LONGEST_LOG = 1 << 20
"""The size in bytes from which the log is truncated at a start."""
_TAIL = 600
"""How many characters of the log an error shows."""
_POLL_SECONDS = 0.02


def until(condition: Callable[[], bool], seconds: float) -> bool:
    """Poll until the condition holds; return False if it does not hold within the time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def private_folder(folder: Path) -> None:
    """Create the folder for this user alone, or check that it is.

    Raises:
        EngineUnavailable: another user owns the folder or may use it.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    stat = folder.stat()
    if stat.st_uid != os.geteuid() or stat.st_mode & 0o077:
        raise EngineUnavailable(
            f"{folder} must be owned by you and closed to others: choose another folder, or chmod 700 {folder}"
        )


@contextmanager
def starting_lock(folder: Path, seconds: float) -> Iterator[None]:
    """Hold the lock for starting an engine in this folder, among all threads and processes.

    Raises:
        EngineUnavailable: another thread or process holds the lock for longer than a start may take.
    """
    descriptor = os.open(folder / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)

    def try_lock() -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    try:
        if not until(try_lock, seconds):
            raise EngineUnavailable(
                f"another process has been starting an engine in {folder} for more than {seconds:.0f} s"
            )
        yield
    finally:
        os.close(descriptor)


def start(
    binary: Path, folder: Path, socket: str, environment: Mapping[str, str], settings: ResidentSettings
) -> subprocess.Popen[bytes]:
    """Start an engine and wait until it listens.

    Its working directory is the folder and the name of the socket is relative, because the complete path may be too
    long. An engine of lifetime `parent` reads from a pipe and ends when the pipe is closed, which happens when the
    owner dies, too.

    Raises:
        EngineUnavailable: it ended or was not ready in time; the message contains the end of its log.
    """
    read, write = os.pipe()
    try:
        with _log(folder) as log:
            begun = os.fstat(log).st_size
            process = subprocess.Popen(
                [str(binary), "serve", "--socket", socket, "--ready-fd", str(write), *settings.arguments()],
                cwd=folder,
                env=dict(environment),
                stdin=subprocess.PIPE if settings.lifetime == "parent" else subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(write,),
                start_new_session=True,
            )
        os.close(write)
        write = -1
        fault = _fault(process, read, settings.start_seconds)
    except OSError as error:
        raise EngineUnavailable(f"{binary} cannot be started: {error.strerror}") from error
    finally:
        os.close(read)
        if write >= 0:
            os.close(write)
    if fault is not None:
        end_session(process.pid)
        process.wait()
        raise EngineUnavailable(f"{binary.name} {fault}; the end of {folder / LOG}:\n{_tail(folder / LOG, begun)}")
    return process


def _fault(process: subprocess.Popen[bytes], ready: int, seconds: float) -> str | None:
    """Wait until the engine reports that it accepts connections; return what is wrong, or None."""
    if not select.select([ready], [], [], seconds)[0]:
        return f"was not ready within {seconds:.0f} s"
    if os.read(ready, 100):
        return None
    if not until(lambda: process.poll() is not None, 1.0):
        return "did not report that it is ready"
    return f"ended with code {process.returncode}"


@contextmanager
def _log(folder: Path) -> Iterator[int]:
    path = folder / LOG
    mode = os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
    descriptor = os.open(path, mode, 0o600)
    try:
        if os.fstat(descriptor).st_size > _LONGEST_LOG:
            os.ftruncate(descriptor, 0)
        yield descriptor
    finally:
        os.close(descriptor)


def _tail(log: Path, begun: int) -> str:
    with log.open("rb") as file:
        file.seek(begun)
        return file.read().decode(errors="replace")[-_TAIL:].strip() or "(empty)"
