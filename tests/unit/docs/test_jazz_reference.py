"""The reference of reside.jazz is what its program writes from the docstrings, and has all public names."""

from __future__ import annotations

import re

import pytest

from reside.jazz import __all__ as names
from reside.jazz.typed import __all__ as typed_names
from tools.jazz_reference import PAGE, page


def test_the_page_is_current() -> None:
    assert PAGE.read_text() == page(), "run `python tools/jazz_reference.py`"


@pytest.mark.parametrize("name", [*names, *typed_names])
def test_each_public_name_has_an_entry(name: str) -> None:
    assert re.search(rf"^### .*`(await )?{re.escape(name)}[`(]", PAGE.read_text(), re.MULTILINE)


def test_no_internal_name_is_shown() -> None:
    assert re.findall(r"`(?:await )?_\w+\(", PAGE.read_text()) == []
