"""Refusals before a call is handled: the receiver has done nothing, so the call may be sent again.

A receiver responds with HTTP 503 and one of the codes below. `not-ready` is different: a handler may raise it when part
of its work is done, so only the caller knows whether the call may be repeated.
"""

from __future__ import annotations

from typing import Final

from reside.model.errors import NotReady


class NotServing(NotReady):
    """The receiver is starting, or can't authenticate callers now."""

    code = "not-serving"


class Restarted(NotServing):
    """The request token was created before the receiver started: a new token is needed."""

    code = "restarted"


BY_CODE: Final[dict[str, type[NotServing]]] = {kind.code: kind for kind in (NotServing, Restarted)}
