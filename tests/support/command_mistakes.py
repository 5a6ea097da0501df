"""What every mistake at the command line ends with: one clear message and a documented exit code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

_PAGE: Final = Path(__file__).resolve().parents[2] / "docs/cli.md"
_ROW: Final = re.compile(r"^\| (\d+) \| .+ \|$", re.MULTILINE)


def documented_codes() -> set[int]:
    """Return the exit codes that docs/cli.md explains."""
    return {int(code) for code in _ROW.findall(_PAGE.read_text(encoding="utf-8"))}


def check_mistake(code: int, errors: str, expected: int, says: str) -> None:
    """Check how a command ended.

    Args:
        code: its exit code.
        errors: what it wrote to standard error.
        expected: the exit code that it must have.
        says: a pattern of its message.
    """
    assert "Traceback" not in errors, errors
    messages = [line for line in errors.splitlines() if line.startswith("error: ")]
    assert len(messages) == 1, errors
    assert errors.splitlines()[-1] == messages[0], "the error is the last line"
    assert re.search(says, messages[0]), f"{messages[0]!r} does not match {says!r}"
    assert (code, code in documented_codes()) == (expected, True), messages[0]
