"""Which lines of a display may differ between two engines: only those printed at intervals."""

import pytest
from support.resident_record import display

ROWS = " -  a:b:C first delete\n -  a:b:C second delete\nResources:\n    2 to delete.\n"


@pytest.mark.parametrize(
    ("was", "printed"),
    [
        (" -  a:b:C first", "@ previewing destroy....\n -  a:b:C first"),
        (" -  a:b:C first", "@ previewing destroy.... -  a:b:C first"),
        ("first delete\n", "first delete@ previewing destroy....\n.\n"),
        ("first delete\n", "first delete.\n..\n"),
    ],
)
def test_dots_of_the_stock_display_are_omitted(was: str, printed: str) -> None:
    assert display(ROWS.replace(was, printed), {}) == display(ROWS, {})


@pytest.mark.parametrize(
    ("was", "printed"), [("first", "other"), ("delete\n", "create\n"), ("2 to delete.", "2 to delete")]
)
def test_all_other_differences_count(was: str, printed: str) -> None:
    assert display(ROWS.replace(was, printed), {}) != display(ROWS, {})
