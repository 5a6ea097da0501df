"""Every rule in docs/loading.md, docs/permissions.md and docs/lessons.md names a test that exists."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[3]
PAGES: Final = ("loading.md", "permissions.md", "lessons.md")
_ROW: Final = re.compile(r"^\| (?!rule|---)(.+?) \| (.+?) \|$", re.MULTILINE)
_TEST: Final = re.compile(r"`([\w/]+\.py)::(test_\w+)`")


def rows(page: str) -> list[tuple[str, str]]:
    """Return the rules of a page, each with the cell that names its test."""
    return _ROW.findall((ROOT / "docs" / page).read_text())


@pytest.mark.parametrize("page", PAGES)
def test_every_rule_names_a_test_that_exists(page: str) -> None:
    found = rows(page)
    assert len(found) > 20
    for rule, cell in found:
        named = _TEST.fullmatch(cell)
        assert named is not None, rule
        path, name = named.groups()
        assert re.search(rf"^(async )?def {name}\(", (ROOT / "tests" / path).read_text(), re.MULTILINE), cell


def test_every_fault_of_the_first_implementation_is_followed_by_what_holds_now() -> None:
    faults = (ROOT / "docs" / "lessons.md").read_text().split("\n## ")[1:]
    assert len(faults) == 9
    for fault in faults:
        assert _ROW.search(fault), fault


@pytest.mark.parametrize("page", PAGES)
def test_no_rule_is_there_twice(page: str) -> None:
    rules = [rule for rule, _ in rows(page)]
    assert len(rules) == len(set(rules))
