"""Runs a system command to its end."""

import os
import subprocess
from collections.abc import Sequence

from reside.local.errors import LocalError
from reside.local.toolchain import default_search

_TIMEOUT = 60.0  # seconds; each of these commands takes milliseconds


class CommandFailedError(LocalError):
    """A system command ended with an error; the message has the command and what it printed."""

    def __init__(self, argv: Sequence[str], output: str) -> None:
        super().__init__(f"`{' '.join(argv)}` failed: {output.strip() or 'without a message'}")


def run(*argv: str) -> str:
    """Run a command and return what it printed.

    Raises:
        CommandFailedError: It ended with an error.
    """
    try:
        done = _run(argv)
    except subprocess.TimeoutExpired as error:
        raise CommandFailedError(argv, f"it did not end within {_TIMEOUT:.0f} s") from error
    if done.returncode != 0:
        raise CommandFailedError(argv, done.stderr + done.stdout)
    return done.stdout


def succeeds(*argv: str) -> bool:
    """Run a command that answers a question by its exit code."""
    return _run(argv).returncode == 0


def _run(argv: Sequence[str]) -> subprocess.CompletedProcess[str]:
    # A root shell opened with `su` has no sbin on its PATH
    environment = {**os.environ, "PATH": default_search()}
    return subprocess.run(
        argv,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=_TIMEOUT,
        stdin=subprocess.DEVNULL,
    )
