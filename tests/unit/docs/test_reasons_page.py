"""docs/reasons.md has every code, status and reason that the command explains."""

from __future__ import annotations

from pathlib import Path

from support import reasons_page

from reside.cli.explanations import explanations

PAGE = Path(__file__).parents[3] / "docs/reasons.md"


def test_the_page_has_the_tables_that_the_code_gives() -> None:
    assert PAGE.read_text().endswith(reasons_page.tables()), "write what `python -m tests.support.reasons_page` prints"


def test_every_topic_has_a_section() -> None:
    assert {each.topic for each in explanations()} == set(reasons_page.TITLES)
