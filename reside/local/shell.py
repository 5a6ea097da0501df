"""Run a system command and wait until it ends."""

import os
import subprocess
from collections.abc import Sequence

from reside.local.errors import LocalError
from reside.local.toolchain import default_search

_TIMEOUT = 60.0  # seconds; each of these commands takes milliseconds


class CommandFailedError(LocalError):
    """A system command failed; the message contains the command and its output."""

    def __init__(self, argv: Sequence[str], output: str) -> None:
        super().__init__(f"`{' '.join(argv)}` failed: {output.strip() or 'no output'}")


def run(*argv: str) -> str:
    """Run a command and return its standard output.

    Raises:
        CommandFailedError: it failed or did not end in time.
    """
    try:
        done = _run(argv)
    except subprocess.TimeoutExpired as error:
        raise CommandFailedError(argv, f"it did not end within {_TIMEOUT:.0f} s") from error
    if done.returncode != 0:
        raise CommandFailedError(argv, done.stderr + done.stdout)
    return done.stdout


def succeeds(*argv: str) -> bool:
    """Run a command and return whether its exit code is 0."""
    return _run(argv).returncode == 0


def _run(argv: Sequence[str]) -> subprocess.CompletedProcess[str]:
    # The PATH of a root shell opened with `su` does not contain sbin
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
