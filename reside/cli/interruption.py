"""What a command says after Ctrl-C: that it was interrupted, and how to go on."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

AGAIN: Final = "run the command again: it continues where it stopped"
_hints: Final[list[str]] = []
"""`asyncio` replaces the error that a block raises after Ctrl-C, so the hint is not part of the error."""


@contextmanager
def how_to_go_on(hint: str) -> Iterator[None]:
    """Let the command say this if Ctrl-C ends the block; the hint of the innermost block counts."""
    import asyncio  # noqa: PLC0415 - the help does without it

    try:
        yield
    except (KeyboardInterrupt, asyncio.CancelledError):
        _hints.append(hint)
        raise


def message() -> str:
    """Return the message of an interrupted command."""
    hint = _hints[0] if _hints else ""
    _hints.clear()
    return f"interrupted: {hint}" if hint else "interrupted"
