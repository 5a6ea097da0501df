"""Questions on the terminal. A yes-or-no question is asked while the session with the cluster stays open.

The event loop reads the standard input, not a thread: Ctrl-C could not interrupt the thread, and the command would hang
until Enter is pressed.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import typer

from reside.cli import output
from reside.model.errors import InvalidInput

_YES, _NO = ("y", "yes"), ("", "n", "no")


async def confirm(question: str) -> bool | None:
    """Ask a yes-or-no question.

    Returns:
        the answer; False if only Enter is pressed, None if the input ends without an answer.
    """
    while True:
        output.console.print(f"{question} [y/N]: ", end="", markup=False, highlight=False)
        line = await _read_line()
        if not line:
            return None
        answer = line.strip().lower()
        if answer in _YES or answer in _NO:
            return answer in _YES
        output.console.print("answer y or n", highlight=False)


async def _read_line() -> str:
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


def ask(question: str, cure: str, **options: Any) -> str:
    """Ask for a text.

    Args:
        question: what is asked for.
        cure: how to run the command where nobody answers.
        options: those of `typer.prompt`.

    Raises:
        InvalidInput: the input ends without an answer.
        KeyboardInterrupt: Ctrl-C is pressed; typer makes one error of both.
    """
    try:
        answer: str = typer.prompt(question, **options)
    except typer.Abort as error:
        if isinstance(error.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        raise InvalidInput(f"the input ended without an answer: {cure}") from None
    return answer
