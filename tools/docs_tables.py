"""A hook of MkDocs: cells of wide tables know the name of their column, which docs/stylesheets/phone.css shows."""

from __future__ import annotations

import re
from html import escape, unescape
from itertools import count
from typing import Any, Final

_WIDE: Final = 3
"""Number of columns that a phone can't show beside each other."""
_TABLE: Final = re.compile(r"<table>.*?</table>", re.DOTALL)
_HEAD: Final = re.compile(r"<th\b[^>]*>(.*?)</th>", re.DOTALL)
_ROW: Final = re.compile(r"<tr>.*?</tr>", re.DOTALL)
_TAG: Final = re.compile(r"<[^>]+>")


def on_page_content(html: str, **_page: Any) -> str:
    """Return the page with the names of columns at the cells of wide tables."""
    return _TABLE.sub(lambda table: _labelled(table[0]), html)


def _labelled(table: str) -> str:
    names = [unescape(_TAG.sub("", name)).strip() for name in _HEAD.findall(table)]
    if len(names) < _WIDE:
        return table
    return _ROW.sub(lambda row: _row(row[0], names), table).replace("<table>", "<table data-wide>", 1)


def _row(row: str, names: list[str]) -> str:
    column = count()
    return re.sub(r"<td\b", lambda _: f'<td data-label="{escape(names[next(column)])}"', row)
