"""docs/codes.md is what `reside explain` says."""

from __future__ import annotations

from reside.cli.explanations import explanations
from tools.codes_reference import PAGE, page


def test_the_page_is_current() -> None:
    assert PAGE.read_text() == page(), "run `python tools/codes_reference.py`"


def test_the_page_has_every_code() -> None:
    rows = [line for line in page().splitlines() if line.startswith("| `")]
    assert len(rows) == len(explanations())
