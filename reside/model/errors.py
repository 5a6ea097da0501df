"""The errors of ReSide, as a tree.

    ResideError
    ├── InvalidInput        the caller's input is wrong; the message says what and how to correct it
    │   ├── InvalidManifest
    │   ├── InvalidName
    │   └── LoadRefused     a load request that can't be carried out
    ├── NotAllowed          a permission is missing
    ├── Conflict            the object has changed or has another owner: read it again
    └── NotReady            transient: something does not exist or does not respond yet; try again later
        └── AnswerLost      a call was sent, but no response arrived: it may have been carried out

Whether an error is transient is the class attribute `transient`, which `reside.common.transience` reads.

Invariant: a message never contains a secret, so it may be logged, stored in Jazz and sent to a client.
"""

from __future__ import annotations

from typing import ClassVar


class ResideError(Exception):
    """Base class of the errors that ReSide raises; `code` is the stable name of an error on the wire."""

    code = "error"
    transient: ClassVar[bool] = False


class InvalidInput(ResideError):  # noqa: N818 - named after what is wrong, as in httpx
    """The caller's input is wrong."""

    code = "invalid-input"


class InvalidManifest(InvalidInput):
    """A manifest has the wrong encoding, is not JSON, or does not match the schema."""

    code = "invalid-manifest"


class InvalidName(InvalidInput):
    """A name is not valid in Kubernetes or ReSide."""

    code = "invalid-name"


class LoadRefused(InvalidInput):
    """A load request can't be carried out: unknown contract, changed info, identity of another image."""

    code = "load-refused"


class NotAllowed(ResideError):  # noqa: N818 - see InvalidInput
    """The caller lacks a permission, which the message names."""

    code = "not-allowed"


class Conflict(ResideError):  # noqa: N818 - see InvalidInput
    """An object has changed in the meantime, or its state does not allow the operation."""

    code = "conflict"


class NotReady(ResideError):  # noqa: N818 - see InvalidInput
    """Something does not exist or does not respond yet; a later attempt may succeed."""

    code = "not-ready"
    transient = True


class AnswerLost(NotReady):
    """A call was sent, but no response arrived; repeat it only if it is idempotent."""


_BY_CODE: dict[str, type[ResideError]] = {
    kind.code: kind
    for kind in (ResideError, InvalidInput, InvalidManifest, InvalidName, LoadRefused, NotAllowed, Conflict, NotReady)
}


def from_wire(code: str, message: str) -> ResideError:
    """Return the error that a peer reported as `code` and `message`; a plain ResideError for an unknown code."""
    return _BY_CODE.get(code, ResideError)(message)
