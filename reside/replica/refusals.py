"""Refusals before a call is handled: the receiver has done nothing, so the caller may send the call again at once.

A receiver answers them with HTTP 503 and one of the codes below. `not-ready` is another matter: a handler may raise
it when half of its work is done, so only the caller knows whether the call may be repeated.
"""

from __future__ import annotations

from typing import Final

from reside.model.errors import NotReady


class NotServing(NotReady):
    """The receiver is starting, or can't authenticate anybody at present."""

    code = "not-serving"


class Restarted(NotServing):
    """The request token was made before the receiver started: it takes a new token."""

    code = "restarted"


BY_CODE: Final[dict[str, type[NotServing]]] = {kind.code: kind for kind in (NotServing, Restarted)}
