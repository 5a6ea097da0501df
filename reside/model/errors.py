"""The errors of ReSide's words, drawn as a tree.

    ResideError
    ├── InvalidInput        the caller's mistake: the message names the thing and the cure
    │   ├── InvalidManifest
    │   ├── InvalidName
    │   └── LoadRefused     a load request that cannot be approved as it stands
    ├── NotAllowed          the caller lacks a permission
    ├── Conflict            the world moved, or somebody else holds the thing: look again
    └── NotReady            transient: a peer, a grant or a value is not there yet; come back later
        └── AnswerLost      a call was sent and its answer did not arrive: it may have been carried out

Whether an error is transient is the class attribute `transient`, which `reside.common.transience` reads.

Invariant: a message never holds a secret, so that it may be logged, stored in Jazz and sent to a client.
"""

from __future__ import annotations

from typing import ClassVar


class ResideError(Exception):
    """Any error that ReSide raises on purpose; ``code`` is its stable name on the wire."""

    code = "error"
    transient: ClassVar[bool] = False


class InvalidInput(ResideError):  # noqa: N818 - named after what is wrong, as the field does
    """The caller's mistake."""

    code = "invalid-input"


class InvalidManifest(InvalidInput):
    """A manifest that is not one: wrong encoding, wrong JSON, wrong schema."""

    code = "invalid-manifest"


class InvalidName(InvalidInput):
    """A name that Kubernetes or ReSide cannot use."""

    code = "invalid-name"


class LoadRefused(InvalidInput):
    """A load request that can't be carried out: unknown contract, changed info, identity of another image."""

    code = "load-refused"


class NotAllowed(ResideError):  # noqa: N818 - see InvalidInput
    """The caller lacks a permission; the message names it."""

    code = "not-allowed"


class Conflict(ResideError):  # noqa: N818 - see InvalidInput
    """The thing changed in between or is in a state that excludes the wish."""

    code = "conflict"


class NotReady(ResideError):  # noqa: N818 - see InvalidInput
    """Something is not there yet; trying again later is right."""

    code = "not-ready"
    transient = True


class AnswerLost(NotReady):
    """A call was sent and its answer did not arrive; repeat it only if doing it twice is the same as doing it once."""


_BY_CODE: dict[str, type[ResideError]] = {
    kind.code: kind
    for kind in (ResideError, InvalidInput, InvalidManifest, InvalidName, LoadRefused, NotAllowed, Conflict, NotReady)
}


def from_wire(code: str, message: str) -> ResideError:
    """The error that a peer reported as ``code`` and ``message``; an unknown code gives a plain ResideError."""
    return _BY_CODE.get(code, ResideError)(message)
