"""The table of docs/jazz.md that names for users of jazz-tools what they look for."""

from __future__ import annotations

import re
from pathlib import Path

_PAGE = Path(__file__).parents[2] / "docs" / "jazz.md"
_SECTION = re.compile(r"^## Names of jazz-tools\n(.*?)^## ", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r"`([\w.]+)`")


def rows() -> list[tuple[list[str], list[str]]]:
    """Return the names of jazz-tools and those of `reside.jazz` in each row."""
    found = _SECTION.search(_PAGE.read_text())
    assert found is not None, "the section is missing"
    lines = [line for line in found.group(1).splitlines() if line.startswith("| `")]
    cells = [line.strip("|").split(" | ") for line in lines]
    return [(_NAME.findall(theirs), _NAME.findall(ours)) for theirs, ours in cells]
