"""A page of documentation as a program: its files are written, its commands run, its outputs are expected.

A fence after a line that is a path in backticks and a colon is a file. A fence `sh` is a script. A fence `text` after
it has lines that the script's output contains in this order; `…` stands for anything. Of content in tabs, a reader
follows one.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_FENCE = re.compile(
    r"(?:^`(?P<path>[\w./-]+)`:\n\n)?^```(?P<language>\w*)\n(?P<content>.*?)^```$", re.MULTILINE | re.DOTALL
)
_TAB = re.compile(r'=== "(.+)"')
_INDENT = " " * 4
_SAVE = '{ pwd; env -0; } >"$RESIDE_TUTORIAL_STATE"'
"""What a shell leaves for the next script: its folder, and its variables."""


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


@dataclass
class Shell:
    """A shell of a reader: what one script changes in its folder and its variables, the next one finds.

    Args:
        folder: the folder that it is in.
        environment: its variables.
        scratch: a folder for what it keeps between scripts.
        typed: what the reader answers to each script.
    """

    folder: Path
    environment: dict[str, str] = field(repr=False)
    scratch: Path
    typed: str = "y\n"

    def run(self, script: str, seconds: float = 300) -> str:
        """Run a script, whose commands must succeed; return its standard output."""
        state = self.scratch / "shell"
        done = subprocess.run(
            ["bash", "-eo", "pipefail", "-c", f"{script}\n{_SAVE}"],
            cwd=self.folder,
            env=self.environment | {"RESIDE_TUTORIAL_STATE": str(state)},
            input=self.typed,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
        folder, _, variables = state.read_text().partition("\n")
        self.folder = type(self.folder)(folder)
        self.environment = dict(line.split("=", 1) for line in variables.split("\0") if line)
        return done.stdout


def section(page: str, heading: str) -> str:
    """Return the part of a page below a heading, without the subsections of others.

    Raises:
        LookupError: the page has no such heading, or several.
    """
    text = re.sub(r"^```.*?^```$", lambda fence: fence[0].replace("\n#", "\n\0"), page, flags=re.MULTILINE | re.DOTALL)
    found = re.findall(rf"^(#+) {re.escape(heading)}\n(.*?)(?=^#|\Z)", text, re.MULTILINE | re.DOTALL)
    if len(found) != 1:
        raise LookupError(f"the page has {len(found)} sections {heading!r}")
    return str(found[0][1]).replace("\0", "#")


def in_tab(page: str, tab: str) -> str:
    """Return a page with the content of the tabs of this name in place of all tabs."""
    lines: list[str] = []
    current = ""
    for line in page.splitlines():
        if heading := _TAB.fullmatch(line):
            current = heading[1]
        elif current and line and not line.startswith(_INDENT):
            current = ""
            lines.append(line)
        elif current in ("", tab):
            lines.append(line.removeprefix(_INDENT) if current else line)
    return "\n".join(lines) + "\n"


def steps(page: str) -> list[Step]:
    """Return the scripts of a page, or of a section of it, in order."""
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
