"""Every test is collected: pytest silently skips folders and files because of their names."""

from __future__ import annotations

import ast
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

TESTS = Path(__file__).parent.parent


def test_no_folder_of_tests_is_skipped(pytestconfig: pytest.Config) -> None:
    skipped = pytestconfig.getini("norecursedirs")
    folders = {path.parent for path in TESTS.rglob("test_*.py")}
    assert [path for path in folders if any(fnmatch(path.name, pattern) for pattern in skipped)] == []


def test_only_files_named_test_contain_tests() -> None:
    others = [path for path in TESTS.rglob("*.py") if not path.name.startswith("test_")]
    found = {path: _functions(path) for path in others}
    assert {path: names for path, names in found.items() if any(name.startswith("test_") for name in names)} == {}


def _functions(path: Path) -> list[str]:
    nodes = ast.parse(path.read_text()).body
    return [node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
