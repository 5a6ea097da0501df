"""Every difference to JavaScript that docs/jazz.md lists is shown by a test that exists."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
SECTION = re.compile(r"^## Differences to cojson 0\.20\.19\n(.*?)^## ", re.MULTILINE | re.DOTALL)
LEAST = 20


def _rows() -> list[list[str]]:
    found = SECTION.search((ROOT / "docs/jazz.md").read_text())
    assert found is not None, "the section is missing"
    lines = [line for line in found.group(1).splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return [row for row in cells if row[0] != "here" and not row[0].startswith("---")]


def _tests(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_every_row_says_what_both_do_and_names_an_existing_test() -> None:
    rows = _rows()
    assert len(rows) >= LEAST
    for row in rows:
        assert len(row) == 3, row
        ours, theirs, test = row
        assert ours.endswith("."), ours
        assert theirs.endswith("."), theirs
        path, _, name = test.strip("`").partition("::")
        assert (ROOT / path).is_file(), f"{path} does not exist; it is to show: {ours}"
        assert name.startswith("test_"), test
        assert name in _tests(path), f"{path} has no {name}; it is to show: {ours}"


def test_no_row_is_there_twice() -> None:
    ours = [row[0] for row in _rows()]
    assert len(ours) == len(set(ours))
