r"""Texts that others wrote: whether UTF-8 can encode them, and how to show them if it can't. Pure.

A JSON string may hold half of a surrogate pair (`"\ud800"`). Python reads it, but can't write it anywhere: not to a
file, a socket, the standard output or Jazz.
"""

from __future__ import annotations

from typing import Final

_SHOWN: Final = 1000
"""Maximum number of characters that are shown of a text."""


def is_utf8(text: str) -> bool:
    """Return whether UTF-8 can encode a text: it has no half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def shown(text: str) -> str:
    """Return a text that can be written: halves of surrogate pairs are escaped, and it is not long."""
    return text[:_SHOWN].encode("utf-8", "backslashreplace").decode()
