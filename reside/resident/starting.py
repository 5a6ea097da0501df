"""Brings an engine up: one at a time in a folder, in a session of its own, with its words in ``engine.log``."""

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
"""Bytes from which on the log is begun anew at a start."""
_TAIL = 600
"""Characters of the log that an error shows."""
_POLL_SECONDS = 0.02


def until(condition: Callable[[], bool], seconds: float) -> bool:
    """Poll until ``condition`` holds; False if it does not within ``seconds``."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def private_folder(folder: Path) -> None:
    """Make the folder for the user alone, or see that it is.

    Raises:
        EngineUnavailable: It belongs to, or may be used by, somebody else.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    stat = folder.stat()
    if stat.st_uid != os.geteuid() or stat.st_mode & 0o077:
        raise EngineUnavailable(f"{folder} must be yours and closed to others: choose another, or chmod 700 {folder}")


@contextmanager
def starting_lock(folder: Path, seconds: float) -> Iterator[None]:
    """Hold the right to start an engine in this folder, among all threads and processes.

    Raises:
        EngineUnavailable: Somebody else has been starting one for longer than an engine takes.
    """
    descriptor = os.open(folder / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)

    def taken() -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    try:
        if not until(taken, seconds):
            raise EngineUnavailable(f"another process is starting an engine in {folder} for more than {seconds:.0f} s")
        yield
    finally:
        os.close(descriptor)


def start(
    binary: Path, folder: Path, socket: str, environment: Mapping[str, str], settings: ResidentSettings
) -> subprocess.Popen[bytes]:
    """Start an engine and wait until it listens.

    Its working directory is the folder and the socket's name is relative: a socket's whole path may be too long.
    An engine of lifetime ``parent`` reads from a pipe whose end it takes for its owner's.

    Raises:
        EngineUnavailable: It ended or said nothing in time; with the end of its log.
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
        raise EngineUnavailable(f"{binary} can't be started: {error.strerror}") from error
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
    """Wait for the line that says that the engine listens; what is wrong if it does not come."""
    if not select.select([ready], [], [], seconds)[0]:
        return f"did not come up within {seconds:.0f} s"
    if os.read(ready, 100):
        return None
    if not until(lambda: process.poll() is not None, 1.0):
        return "does not say that it is ready"
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
        return file.read().decode(errors="replace")[-_TAIL:].strip() or "(it said nothing)"
