"""Print a random sample of docstrings and comments, for a review from a newcomer's point of view.

    python -m tests.support.prose_sample SEED [COUNT]

The same seed on the same commit prints the same sample. The sample is drawn from the docstrings, including those of
attributes, and the comments of the tracked Python, Go and JavaScript files in `FOLDERS`.
"""

from __future__ import annotations

import argparse
import ast
import io
import random
import re
import subprocess
import sys
import tokenize
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).parents[2]
FOLDERS: Final = ("reside", "stacks", "policy", "images", "tools", "engine")
_DIRECTIVE = re.compile(r"#\s*(noqa|type:|ruff:|pragma|!)|//\s*(go:|nolint|\+build)")
_SLASHES = re.compile(r"^\s*//")


@dataclass(frozen=True)
class Prose:
    """One docstring or comment: its file, the number of its first line, its text."""

    path: str
    line: int
    text: str


def collect(root: Path = ROOT) -> list[Prose]:
    """Return all docstrings and comments, by path and line."""
    command = ["git", "ls-files", "--", *FOLDERS]
    listed = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout
    found: list[Prose] = []
    for path in sorted(listed.splitlines()):
        if path.endswith(".py"):
            found += _in_python(path, (root / path).read_text())
        elif path.endswith((".go", ".mjs")):
            found += _in_slashes(path, (root / path).read_text())
    return found


def sample(found: list[Prose], seed: int, count: int) -> list[Prose]:
    """Return a random sample of `count` items, or all if there are fewer; equal seeds give equal samples."""
    return random.Random(seed).sample(found, min(count, len(found)))  # noqa: S311 - a sample, no secret


def _in_python(path: str, source: str) -> list[Prose]:
    docstrings = [
        Prose(path, node.lineno, node.value.value)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    ]
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = [token for token in tokens if token.type == tokenize.COMMENT and _is_prose(token.string)]
    alone = [token for token in comments if token.line.lstrip().startswith("#")]
    beside = [Prose(path, token.start[0], token.string) for token in comments if token not in alone]
    blocks = _joined(path, [(token.start[0], token.string) for token in alone])
    return sorted([*docstrings, *beside, *blocks], key=lambda prose: prose.line)


def _in_slashes(path: str, source: str) -> list[Prose]:
    lines = [(number, line.strip()) for number, line in enumerate(source.splitlines(), 1) if _SLASHES.match(line)]
    return list(_joined(path, [(number, line) for number, line in lines if _is_prose(line)]))


def _joined(path: str, lines: list[tuple[int, str]]) -> Iterator[Prose]:
    """Yield comments; those on consecutive lines are joined."""
    block: list[str] = []
    first = last = 0
    for number, line in lines:
        if block and number == last + 1:
            block.append(line)
        else:
            if block:
                yield Prose(path, first, "\n".join(block))
            block, first = [line], number
        last = number
    if block:
        yield Prose(path, first, "\n".join(block))


def _is_prose(comment: str) -> bool:
    """Return whether a comment is prose: not a directive, or one with a reason after a dash."""
    return _DIRECTIVE.match(comment) is None or " - " in comment


def main() -> None:
    """Print a sample."""
    parser = argparse.ArgumentParser(description="Print docstrings and comments drawn at random.")
    parser.add_argument("seed", type=int)
    parser.add_argument("count", type=int, nargs="?", default=100)
    options = parser.parse_args()
    for number, prose in enumerate(sample(collect(), options.seed, options.count), 1):
        sys.stdout.write(f"{number}. {prose.path}:{prose.line}\n{prose.text.strip()}\n\n")


if __name__ == "__main__":
    main()
