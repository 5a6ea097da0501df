"""The prompt of `reside secret set` on a real terminal: it shows nothing of the value; Ctrl-C and Ctrl-D leave it."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

_WITHIN_S = 60.0
_SILENCE_S = 5.0
VALUE = b"hunter2 and more"
ROOT = Path(__file__).parents[3]
CONTROLLED = "import fcntl, termios, sys; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "


@contextmanager
def on_a_terminal(program: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Run a Python program that has a terminal; yield it and the other end of the terminal."""
    master, slave = pty.openpty()
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", CONTROLLED + program]
    running = subprocess.Popen(
        command, stdin=slave, stdout=slave, stderr=slave, env=environment, start_new_session=True
    )
    os.close(slave)
    try:
        yield running, master
    finally:
        running.kill()
        running.wait()
        os.close(master)


def read_until(terminal: int, text: bytes, again: bytes = b"") -> bytes:
    """Return what the program writes, to this text or to its end; type `again` each time it is silent for long.

    Python loses the effect of a Ctrl-C that arrives right before it begins to read, until the next one.
    """
    seen, deadline = b"", time.monotonic() + _WITHIN_S
    while text not in seen:
        if not select.select([terminal], [], [], _SILENCE_S)[0]:
            assert time.monotonic() < deadline, seen
            os.write(terminal, again)
            continue
        try:
            more = os.read(terminal, 4096)
        except OSError:  # the program has ended
            break
        if not more:
            break
        seen += more
    assert text in seen, seen
    return seen


def test_a_value_that_is_typed_is_not_shown() -> None:
    program = "from reside.cli.secret_input import read_given; print('read', len(read_given('db', None, None)))"
    with on_a_terminal(program) as (_, terminal):
        seen = read_until(terminal, b"value of db: ")
        os.write(terminal, VALUE + b"\n")
        seen += read_until(terminal, b"Repeat for confirmation: ")
        os.write(terminal, VALUE + b"\n")
        seen += read_until(terminal, f"read {len(VALUE)}".encode())
    assert b"hunter2" not in seen


@pytest.mark.parametrize(
    ("typed", "code", "said"),
    [(b"hunter2\x03", 130, b""), (b"\x04", 1, b"no value was given: nothing is changed")],
)
def test_ctrl_c_and_ctrl_d_leave_the_prompt_with_their_exit_codes(typed: bytes, code: int, said: bytes) -> None:
    program = "from reside.cli.main import run; code = run(['secret', 'set', 'db']); print('code', code)"
    with on_a_terminal(program) as (_, terminal):
        seen = read_until(terminal, b"value of db: ")
        os.write(terminal, typed)
        seen += read_until(terminal, f"code {code}\r".encode(), again=typed[-1:])
    assert said in seen
    assert b"hunter2" not in seen
    assert b"Traceback" not in seen
