"""The TLS settings of all HTTP clients of a process."""

from __future__ import annotations

import ssl
from functools import cache


@cache
def trusted_authorities() -> ssl.SSLContext:
    """Return a context with this machine's certificate authorities, which are loaded once, because that is slow."""
    return ssl.create_default_context()
