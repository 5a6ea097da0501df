"""Refusals before a call is handled: the receiver has done nothing, so the call may be sent again.

A receiver responds with one of the codes below. `not-ready` is different: a handler may raise it when part of its work
is done, so only the caller knows whether the call may be repeated.
"""

from __future__ import annotations

from reside.model.errors import NotReady


class NotServing(NotReady):
    """The receiver is starting, or can't authenticate callers now (HTTP 503)."""

    code = "not-serving"


class OtherInstance(NotServing):
    """The call reached another process of the receiver than its token was made for (HTTP 421).

    Each process remembers the tokens that it has accepted. Since a token is made for one process, no other process of
    the same replica, running beside it or after it, accepts the token a second time.

    Attributes:
        instance: the process that the call has reached; make a token for it, and send the call again.
        agent_id: the agent that the receiver names as its own, not checked; None: it names none.
    """

    code = "other-instance"

    def __init__(self, message: str, instance: str, agent_id: str | None = None) -> None:
        super().__init__(message)
        self.instance = instance
        self.agent_id = agent_id
