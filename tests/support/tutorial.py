"""A page of documentation as a program: its files are written, its commands run, its outputs are expected.

A fence after a line that is a path in backticks and a colon is a file. A fence `sh` is a script. A fence `text` after
it has lines that the script's output contains in this order; `…` stands for anything.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_FENCE = re.compile(
    r"(?:^`(?P<path>[\w./-]+)`:\n\n)?^```(?P<language>\w*)\n(?P<content>.*?)^```$", re.MULTILINE | re.DOTALL
)


@dataclass
class Step:
    """A script of the page, with the files that the page has shown before it."""

    script: str
    files: dict[str, str] = field(default_factory=dict)
    expected: list[str] = field(default_factory=list)

    def write(self, folder: Path) -> None:
        """Write the files below a folder."""
        for name, content in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)

    def is_shown(self, output: str) -> bool:
        """Return whether an output contains the expected lines in their order."""
        lines = iter(re.sub(r"\s+", " ", line).strip() for line in output.splitlines())
        return all(any(_matches(pattern, line) for line in lines) for pattern in self.expected)


def steps(page: str) -> list[Step]:
    """Return the scripts of a page in order."""
    found: list[Step] = []
    files: dict[str, str] = {}
    for fence in _FENCE.finditer(page):
        if fence["path"]:
            files[fence["path"]] = fence["content"]
        elif fence["language"] == "sh":
            found.append(Step(fence["content"], files))
            files = {}
        elif fence["language"] == "text":
            found[-1].expected += fence["content"].splitlines()
    return found


def _matches(pattern: str, line: str) -> bool:
    return re.fullmatch(".*".join(re.escape(part.strip()) for part in f"{pattern}".split("…")), line) is not None
