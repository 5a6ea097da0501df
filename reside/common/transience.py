"""Whether another attempt can succeed although nobody acts.

Each of ReSide's error trees answers this in the class: a class attribute `transient: bool`, which subclasses override.
So a new error is classified where it is defined, and no caller keeps a list of types. Errors of libraries that mean a
lost or missing connection are known here. Every other exception is a bug.

Invariant: an error with this attribute never holds a secret in its message.
"""

from __future__ import annotations

import errno
import socket
from typing import Final

import httpx

_LIBRARY: Final = (httpx.TransportError, ConnectionError, TimeoutError, socket.gaierror)
_ERRNO: Final = frozenset({errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN, errno.ENETDOWN})
"""Numbers of a plain `OSError` that a connection raises."""


def is_transient(error: BaseException) -> bool:
    """Return whether the same attempt may succeed later although nobody acts."""
    declared = _declared(error)
    if declared is not None:
        return declared
    return isinstance(error, _LIBRARY) or (isinstance(error, OSError) and error.errno in _ERRNO)


def is_expected(error: BaseException) -> bool:
    """Return whether an error is raised on purpose or by a connection; every other one is a bug."""
    return _declared(error) is not None or is_transient(error)


def safe_text(error: BaseException) -> str:
    """Return an error's message, or the name of its type if the message may hold anything, secrets included."""
    return str(error) if _declared(error) is not None else type(error).__name__


def _declared(error: BaseException) -> bool | None:
    declared = getattr(error, "transient", None)
    return declared if isinstance(declared, bool) else None
