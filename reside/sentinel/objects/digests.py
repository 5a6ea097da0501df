"""Digests of objects, which tell the Sentinel whether something has changed. Only the Sentinel compares them.

They are made several times for each object that changes, so they use a faster encoder than canonical JSON. It writes
the same text, but for numbers with a fraction.
"""

from __future__ import annotations

from typing import Any

import orjson

from reside.model.stacks import canonical


def digestible(value: Any) -> bytes:
    """Return JSON with sorted keys. What orjson can't write becomes canonical JSON."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # surrogates, large numbers, depth
        return canonical(value).encode(errors="surrogatepass")
