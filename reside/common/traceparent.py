"""The context of a trace as text: the `traceparent` of W3C Trace Context, version 00. Pure."""

from __future__ import annotations

import re
from typing import Any, Final

TRACEPARENT: Final = "traceparent"
"""Name of the header, and of the member of stored data."""
_FORMAT: Final = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


def parse(value: Any) -> str | None:
    """Return a traceparent; None if the value is not one. It may come from a stranger."""
    return value if isinstance(value, str) and _FORMAT.fullmatch(value) else None
