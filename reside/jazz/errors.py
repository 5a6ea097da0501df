"""The errors of `reside.jazz`.

The tree::

    JazzError
    ├── JazzUnavailable     transient: the sync server can't be reached; retry later
    ├── JazzTimeout         transient: the server did not answer or acknowledge in time
    ├── StoreFailed         permanent: the file of a local store can't be used (names it and the cure)
    ├── NodeClosed          the node was closed while an operation still waited for it
    ├── ValueNotFound       permanent: the server does not have the value
    │   └── ValueDeleted    permanent: an admin of the owning group deleted the value
    ├── WrongKind           permanent: the value is of another kind than requested
    ├── NotPermitted        permanent: the account's role does not allow it (names value, group and role)
    ├── InvalidArgument     permanent: an argument is not what the operation accepts: a caller passes another one
    ├── InvalidState        permanent: something must be done first, or is done already (the message says what)
    ├── InvalidContent      permanent: what others wrote violates the protocol, or lacks something
    ├── InvalidCredentials  permanent: an agent secret is malformed or belongs to another account
    └── TokenRefused        permanent: a request token was refused (`reason` says why)

The class attribute `transient` gives the same information to programs.

No message ever contains a secret, a token or the content of a value.
"""
# ruff: noqa: N818 - names say what happened, as in httpx; the base class marks them as errors

from pathlib import Path
from typing import ClassVar


class JazzError(Exception):
    """The base of all errors of this package.

    Attributes:
        transient: whether another attempt may succeed although nothing is changed.
    """

    transient: ClassVar[bool] = False


class JazzUnavailable(JazzError):
    """The sync server can't be reached. Transient."""

    transient = True


class JazzTimeout(JazzError):
    """The sync server was reached but did not answer or acknowledge in time. Transient."""

    transient = True


class NodeClosed(JazzError):
    """The node was closed (its `async with` block ended), or was never opened."""


class StoreFailed(JazzError):
    """The file of a local store can't be used.

    It is corrupt, belongs to another account, is open in another process, or is inaccessible.

    Attributes:
        path: the file.
    """

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"the local store {path}: {why}")
        self.path = path


class ValueNotFound(JazzError):
    """The server has no value with this id.

    Attributes:
        value: the requested id.
        why: why it is not available.
    """

    def __init__(self, value: str, why: str = "the sync server does not have it") -> None:
        super().__init__(f"no value {value}: {why}")
        self.value = value
        self.why = why


class ValueDeleted(ValueNotFound):
    """An admin of the owning group deleted the value permanently."""

    def __init__(self, value: str) -> None:
        super().__init__(value, "an admin of its group deleted it")


class WrongKind(JazzError):
    """A value is of another kind than the caller requested."""

    def __init__(self, value: str, *, expected: str, actual: str) -> None:
        super().__init__(f"{value} is a {actual}, not a {expected}: load it with load_{actual}, or with load")
        self.value = value
        self.expected = expected
        self.actual = actual


class NotPermitted(JazzError):
    """The account's role in the owning group does not allow the operation.

    Attributes:
        value: id of the value to be changed; the group itself for a change of membership.
        group: id of the owning group.
        role: the account's role in that group; None if it has none.
    """

    def __init__(self, value: str, *, group: str, role: str | None, act: str, needs: str) -> None:
        super().__init__(f"not permitted to {act} {value}: role in group {group} is {role or 'none'}, needs {needs}")
        self.value = value
        self.group = group
        self.role = role


class InvalidArgument(JazzError):
    """An argument is not what the operation accepts: a value that is not JSON, a malformed invite, an unknown role."""


class InvalidState(JazzError):
    """The operation is not possible now: something must be loaded or started first, or has ended."""


class InvalidContent(JazzError):
    """What others wrote violates the protocol, or lacks what the operation needs. The caller can't repair it."""


class InvalidCredentials(JazzError):
    """An agent secret is malformed, or does not belong to the account that the server knows."""


class TokenRefused(JazzError):
    """A request token was refused.

    Attributes:
        reason: one of `missing`, `malformed`, `receiver`, `method`, `path`, `body`, `expired`, `future`, `account`,
            `signature`, `reused` and `restarted`. After `restarted`, retry with a new token.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(f"request token refused: {message}")
        self.reason = reason
