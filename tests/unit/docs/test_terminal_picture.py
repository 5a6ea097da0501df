"""The picture of the terminal is what the command prints."""

from __future__ import annotations

import re
from xml.etree.ElementTree import fromstring

from tools.terminal_picture import PICTURE, picture


def test_the_picture_is_current() -> None:
    assert PICTURE.read_text() == picture(), "run `python tools/terminal_picture.py`"


def test_the_picture_is_xml_and_loads_nothing() -> None:
    fromstring(PICTURE.read_text())  # noqa: S314 - our own file
    assert not re.search(r"<script|url\(\"?http", PICTURE.read_text())
