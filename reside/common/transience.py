"""Decide whether an error is transient: a retry may succeed although nothing is changed.

Each error class of ReSide has a class attribute `transient: bool`, which subclasses override. So an error is classified
where it is defined, and no caller keeps a list of types. This module knows the errors of libraries that mean a lost or
missing connection. Every other exception is a bug. A group of errors is what all of its errors are.

Invariant: the message of an error with this attribute never contains a secret.
"""

from __future__ import annotations

import errno
import socket
import traceback
from collections import deque
from pathlib import Path
from typing import Final

import httpx2

from reside.common.texts import shown

_LIBRARY: Final = (httpx2.TransportError, ConnectionError, TimeoutError, socket.gaierror)
_ERRNO: Final = frozenset({errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN, errno.ENETDOWN})
"""Numbers of connection errors that are plain `OSError`s."""


def is_transient(error: BaseException) -> bool:
    """Return whether a retry may succeed although nothing is changed."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(is_transient, error.exceptions))
    declared = _declared(error)
    if declared is not None:
        return declared
    return isinstance(error, _LIBRARY) or (isinstance(error, OSError) and error.errno in _ERRNO)


def is_expected(error: BaseException) -> bool:
    """Return whether an error is one of ReSide's or of a connection; every other error is a bug."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(is_expected, error.exceptions))
    return _declared(error) is not None or is_transient(error)


def safe_text(error: BaseException) -> str:
    """Return an error's message, or only the name of its type if the message may contain secrets.

    It can be written: it contains no half of a surrogate pair, and it is not long.
    """
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(dict.fromkeys(map(safe_text, error.exceptions)))
    return shown(str(error)) if _declared(error) is not None else type(error).__name__


def place_of(error: BaseException) -> str:
    """Return file and line where an error was raised, without any value."""
    frames = deque(traceback.walk_tb(error.__traceback__), maxlen=1)
    return f"{Path(frames[0][0].f_code.co_filename).name}:{frames[0][1]}" if frames else "an unknown place"


def _declared(error: BaseException) -> bool | None:
    declared = getattr(error, "transient", None)
    return declared if isinstance(declared, bool) else None
