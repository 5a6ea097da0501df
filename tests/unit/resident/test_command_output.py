"""The text of a command is split into whole lines without trailing white space, as by the stock command."""

from __future__ import annotations

import pytest

from reside.resident.output import Lines


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        (["a\nb\n"], ["a", "b"]),
        (["a", "b\nc"], ["ab", "c"]),
        (["a  \t\n\n", " b"], ["a", "", " b"]),
        (["a\r\nb\rc\n"], ["a", "b", "c"]),
        (["a\r", "\nb"], ["a", "b"]),
        (["a\r"], ["a"]),
        ([], []),
        (["\n"], [""]),
    ],
)
def test_lines_do_not_depend_on_the_pieces(pieces: list[str], expected: list[str]) -> None:
    seen: list[str] = []
    lines = Lines(seen.append)
    for piece in pieces:
        lines.feed(piece)
    assert lines.end() == "\n".join(expected)
    assert seen == expected


def test_a_line_is_reported_as_soon_as_it_is_complete() -> None:
    seen: list[str] = []
    lines = Lines(seen.append)
    lines.feed("first\nsec")
    assert seen == ["first"]


def test_a_callback_that_raises_is_not_called_again_and_its_error_is_kept() -> None:
    seen: list[str] = []

    def receive(line: str) -> None:
        seen.append(line)
        raise LookupError(line)

    lines = Lines(receive)
    lines.feed("a\nb\n")
    assert lines.end() == "a\nb"
    assert seen == ["a"]
    assert isinstance(lines.failure, LookupError)
