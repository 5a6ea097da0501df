"""Names, bodies and data of the contract `secret.v1`. They are on the wire and in data, and never change.

The replica *secret* implements it; replicas that use secrets, the command line and the tests use it. docs/secrets.md
describes it. No model here prints a value: a body carries the id of the Jazz map that has it.
"""

from __future__ import annotations

import re
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from reside.model.constants import OWN
from reside.model.entities import Entity
from reside.model.errors import InvalidInput

SECRET_CONTRACT: Final = f"{OWN}/contracts/secret.v1"
SECRET_IDENTITY: Final = f"{OWN}/replicas/secret"

READ_SECRET: Final = "secret:read"  # noqa: S105 - a name
"""Read one secret; the name of the secret is the instance."""
WRITE_SECRET: Final = "secret:write"  # noqa: S105 - a name
"""Set and delete one secret; the name of the secret is the instance. It does not include reading."""
MANAGE_SECRETS: Final = "secret:manage:all"
"""List, set and delete all secrets. It does not include reading."""

SET_SECRET: Final = "set-secret"  # noqa: S105 - a name
DELETE_SECRET: Final = "delete-secret"  # noqa: S105 - a name
LIST_SECRETS: Final = "list-secrets"

VALUE: Final = "value"
"""Member with the value: of the map that a client hands over, and of the one that readers read."""
STATE: Final = "state"
"""Member of the map of a secret: its SecretState."""

MAX_VALUE_BYTES: Final = 64 * 1024
"""Longest value in UTF-8. An environment variable of Linux has at most twice as much."""
MAX_SECRETS: Final = 1000
"""Names that one cluster can have."""
_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?")

SecretName = Annotated[str, Field(pattern=rf"^{_NAME.pattern}$")]
_MapId = Annotated[str, Field(pattern=r"^co_z[1-9A-HJ-NP-Za-km-z]{10,60}$")]


class SecretState(Entity):
    """What is known of a secret, without its value.

    Attributes:
        value: id of the map that has the value; None once the secret is deleted.
        version: 1 for the first value, and one more for each value after it and for a deletion.
        at: when it was set or deleted, in ms since 1970.
        by: the account that set or deleted it.
        handed: id of the map that this account handed over; a repeated call with it has no effect.
    """

    value: str | None = None
    version: int
    at: int
    by: str
    handed: str | None = None

    @classmethod
    def parse(cls, stored: object) -> SecretState | None:
        """Return the state in a member of a map; None if it is missing or malformed."""
        try:
            return None if stored is None else cls.model_validate(stored)
        except ValidationError:
            return None


class ListedSecret(Entity):
    """A secret in a list: `version`, `at` and `by` are None without a value; `readers` and `writers` are accounts."""

    name: str
    version: int | None = None
    at: int | None = None
    by: str | None = None
    readers: tuple[str, ...] = ()
    writers: tuple[str, ...] = ()


class ListedSecrets(Entity):
    """Response of `list-secrets`: all for `secret:manage:all`, else those that the caller may read or set."""

    secrets: tuple[ListedSecret, ...]


class NamedState(Entity):
    """Response of `set-secret` and `delete-secret`."""

    name: str
    version: int


class _Body(BaseModel):
    model_config = ConfigDict(
        extra="forbid", alias_generator=to_camel, populate_by_name=True, hide_input_in_errors=True
    )


class SetSecret(_Body):
    """Body of `set-secret`.

    Attributes:
        value: id of a map whose first transaction is the caller's, and sets the member `value`.
        replaces: version that the new value replaces; another one is a conflict. None: any.
    """

    name: SecretName
    value: _MapId
    replaces: int | None = None


class NamedSecret(_Body):
    """Body of `delete-secret`."""

    name: SecretName


class NoMembers(_Body):
    """Body of `list-secrets`."""


def secret_by_name(name: str) -> str:
    """Return the name of the look-up of a secret: a unique map whose `target` is the map of the secret."""
    return f"secret.by-name.{name}"


def is_name(name: str | None) -> bool:
    """Return whether a secret can have this name."""
    return name is not None and _NAME.fullmatch(name) is not None


def check_name(name: str) -> str:
    """Return a name that a secret can have.

    Raises:
        InvalidInput: it can't.
    """
    if not is_name(name):
        raise InvalidInput(
            f"{name!r} can't be the name of a secret: use 1 to 63 lower-case letters, digits, dots and hyphens, "
            "with a letter or a digit at both ends"
        )
    return name


def check_value(value: object) -> str:
    """Return a value that a secret can have. No message contains a part of it.

    Raises:
        InvalidInput: it is no text, is empty, too long, or can't be stored.
    """
    if not isinstance(value, str):
        raise InvalidInput("the value of a secret must be a text: encode other data in base64")
    try:
        length = len(value.encode())
    except UnicodeEncodeError:
        raise InvalidInput("the value of a secret must be UTF-8: encode other data in base64") from None
    if not value:
        raise InvalidInput("the value is empty: give one, or delete the secret with `reside secret delete`")
    if "\0" in value:
        raise InvalidInput("the value has a NUL character, which no environment variable can have: encode it in base64")
    if length > MAX_VALUE_BYTES:
        raise InvalidInput(
            f"the value has {length} bytes, and a secret at most {MAX_VALUE_BYTES}: "
            "store large data elsewhere, and its key as the secret"
        )
    return value
