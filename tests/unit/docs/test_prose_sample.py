"""The script that prints a random sample of docstrings and comments."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from support.prose_sample import FOLDERS, ROOT, Prose, collect, sample

if TYPE_CHECKING:
    from pathlib import Path

PYTHON = '''"""Of a module."""

LIMIT = 3
"""Of an attribute."""

# One comment
# of two lines.
import os  # noqa: F401
import sys  # noqa: F401 - beside code
'''
GO = """// Of a package.
package main

//go:build linux
func main() {} // not drawn: beside code
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "reside").mkdir()
    (tmp_path / "reside" / "a.py").write_text(PYTHON)
    (tmp_path / "engine").mkdir()
    (tmp_path / "engine" / "main.go").write_text(GO)
    (tmp_path / "reside" / "untracked.py").write_text("# not drawn")
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    subprocess.run(["git", "add", "reside/a.py", "engine"], cwd=tmp_path, check=True)
    return tmp_path


def test_docstrings_and_comments_are_found(checkout: Path) -> None:
    assert collect(checkout) == [
        Prose("engine/main.go", 1, "// Of a package."),
        Prose("reside/a.py", 1, "Of a module."),
        Prose("reside/a.py", 4, "Of an attribute."),
        Prose("reside/a.py", 6, "# One comment\n# of two lines."),
        Prose("reside/a.py", 9, "# noqa: F401 - beside code"),
    ]


def test_a_seed_gives_the_same_sample_again() -> None:
    found = [Prose("reside/a.py", line, "text") for line in range(1000)]
    first = sample(found, 7, 100)
    assert len(set(first)) == 100
    assert first == sample(found, 7, 100)
    assert first != sample(found, 8, 100)


def test_the_folders_exist() -> None:
    assert all((ROOT / folder).is_dir() for folder in FOLDERS)
