"""Questions to the person at the command line, asked while the session with the cluster stays open.

No thread reads the standard input: Ctrl-C could not end it, and the command would hang until Enter is pressed.
"""

from __future__ import annotations

import asyncio
import sys

from reside.cli import output

_YES, _NO = ("y", "yes"), ("", "n", "no")


async def confirm(question: str) -> bool | None:
    """Ask a yes-or-no question.

    Returns:
        the answer; False if only Enter is pressed, None if the input ends without an answer.
    """
    while True:
        output.console.print(f"{question} [y/N]: ", end="", markup=False, highlight=False)
        line = await _line()
        if not line:
            return None
        answer = line.strip().lower()
        if answer in _YES or answer in _NO:
            return answer in _YES
        output.console.print("y or n, please", highlight=False)


async def _line() -> str:
    """Return the next line of the standard input; an empty string at its end."""
    loop, readable = asyncio.get_running_loop(), asyncio.Event()
    try:
        loop.add_reader(sys.stdin, readable.set)
    except PermissionError:  # a regular file or /dev/null, which is always readable
        return sys.stdin.readline()
    try:
        await readable.wait()
    finally:
        loop.remove_reader(sys.stdin)
    return sys.stdin.readline()
