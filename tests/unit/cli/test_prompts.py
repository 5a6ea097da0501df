"""Prompts: which answers count, from a pipe, a file, or without any input."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import anyio
import pytest

from reside.cli.prompt import confirm

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("y\n", True),
        ("YES\n", True),
        ("n\n", False),
        ("\n", False),
        ("perhaps\ny\n", True),
        ("", None),
        ("what\n", None),
    ],
)
async def test_answers_from_a_pipe_and_from_a_file(
    typed: str, answer: bool | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, writing = os.pipe()
    os.write(writing, typed.encode())
    os.close(writing)
    file = tmp_path / "answers"
    file.write_text(typed)
    for stdin in (os.fdopen(reading), file.open()):
        with stdin:
            monkeypatch.setattr("sys.stdin", stdin)
            assert await confirm("Really?") is answer


async def test_an_open_question_can_be_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        with anyio.move_on_after(0.01) as scope:
            await confirm("Really?")
    os.close(writing)
    assert scope.cancelled_caught
