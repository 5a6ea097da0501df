"""Every rule in docs/loading.md and docs/permissions.md names a test that exists."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[3]
_ROW: Final = re.compile(r"^\| (?!rule|---)(.+?) \| (.+?) \|$", re.MULTILINE)
_TEST: Final = re.compile(r"`([\w/]+\.py)::(test_\w+)`")


def rows(page: str) -> list[tuple[str, str]]:
    """Return the rules of a page, each with the cell that names its test."""
    return _ROW.findall((ROOT / "docs" / page).read_text())


@pytest.mark.parametrize("page", ["loading.md", "permissions.md"])
def test_every_rule_names_a_test_that_exists(page: str) -> None:
    found = rows(page)
    assert len(found) > 20
    for rule, cell in found:
        named = _TEST.fullmatch(cell)
        assert named is not None, rule
        path, name = named.groups()
        assert re.search(rf"^(async )?def {name}\(", (ROOT / "tests" / path).read_text(), re.MULTILINE), cell


@pytest.mark.parametrize("page", ["loading.md", "permissions.md"])
def test_no_rule_is_there_twice(page: str) -> None:
    rules = [rule for rule, _ in rows(page)]
    assert len(rules) == len(set(rules))
