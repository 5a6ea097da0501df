"""What can go wrong in `reside.jazz`.

The tree::

    JazzError
    ├── JazzUnavailable     transient: the sync server can't be reached; come back later
    ├── JazzTimeout         transient: the server did not answer or acknowledge in time
    ├── StoreFailed         terminal: the file of a local store can't be used (names it and the cure)
    ├── NodeClosed          the node was left while something still waited for it
    ├── ValueNotFound       terminal: the server has no such value
    │   └── ValueDeleted    terminal: an admin of its group deleted it
    ├── WrongKind           terminal: the value is of another kind than asked for
    ├── NotPermitted        terminal: the account's role does not allow it (names value, group and role)
    ├── InvalidContent      terminal: bytes from outside, or a value to write, break the protocol
    ├── InvalidCredentials  terminal: an agent secret that is malformed or belongs to another account
    └── TokenRefused        terminal: a request token that must not be believed (`reason` says why)

The class attribute `transient` says the same to programs.

No message ever contains a secret, a token or the content of a value.
"""
# ruff: noqa: N818 - names say what happened, as in httpx; the common base says that they are errors

from pathlib import Path
from typing import ClassVar


class JazzError(Exception):
    """The base of all errors of this package.

    Attributes:
        transient: Whether another attempt may succeed although nobody acts.
    """

    transient: ClassVar[bool] = False


class JazzUnavailable(JazzError):
    """The sync server can't be reached. Transient."""

    transient = True


class JazzTimeout(JazzError):
    """The sync server was reached but did not answer or acknowledge in time. Transient."""

    transient = True


class NodeClosed(JazzError):
    """The node was closed (its `async with` block was left), or was never entered."""


class StoreFailed(JazzError):
    """The file of a local store can't be used: broken, of another account, open in another process, or out of reach.

    Attributes:
        path: The file.
    """

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"the local store {path}: {why}")
        self.path = path


class ValueNotFound(JazzError):
    """The server has no value of this id.

    Attributes:
        value: The id that was asked for.
        why: Why it is not to be had.
    """

    def __init__(self, value: str, why: str = "the sync server does not have it") -> None:
        super().__init__(f"no value {value}: {why}")
        self.value = value
        self.why = why


class ValueDeleted(ValueNotFound):
    """An admin of the owning group deleted the value, for ever."""

    def __init__(self, value: str) -> None:
        super().__init__(value, "an admin of its group deleted it")


class WrongKind(JazzError):
    """A value is of another kind than the caller asked for."""

    def __init__(self, value: str, *, expected: str, actual: str) -> None:
        super().__init__(f"{value} is a {actual}, not a {expected}")
        self.value = value
        self.expected = expected
        self.actual = actual


class NotPermitted(JazzError):
    """The account's role in the owning group does not allow the act.

    Attributes:
        value: Id of the value that was to be changed (the group itself for a change of membership).
        group: Id of the owning group.
        role: The account's role in that group, None for none.
    """

    def __init__(self, value: str, *, group: str, role: str | None, act: str, needs: str) -> None:
        super().__init__(f"not permitted to {act} {value}: role in group {group} is {role or 'none'}, needs {needs}")
        self.value = value
        self.group = group
        self.role = role


class InvalidContent(JazzError):
    """Something breaks the protocol: a header, a transaction, a message, or a value that is not JSON."""


class InvalidCredentials(JazzError):
    """An agent secret is malformed, or does not belong to the account that the server knows."""


class TokenRefused(JazzError):
    """A request token was refused.

    Attributes:
        reason: One of `missing`, `malformed`, `receiver`, `method`, `path`, `body`, `expired`, `future`, `account`,
            `signature`, `reused`, and `restarted`, which a new token cures.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(f"request token refused: {message}")
        self.reason = reason
