"""Where the bootstrap's own (Pulumi) state is: a folder of this machine, or an object store that several machines use.

The environment names the object store and the key. Their credentials are those of Pulumi: `AWS_…` for S3 and KMS.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

from pydantic import TypeAdapter, ValidationError

from reside.model.backends import PASSPHRASE, VOLUME, SecretsProvider, StateBackend
from reside.model.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping

STORE: Final = "RESIDE_STATE_STORE"
KEY: Final = "RESIDE_STATE_KEY"
STACK_LINES: Final = ("encryptionsalt:", "secretsprovider:", "encryptedkey:")
"""Beginnings of the lines that Pulumi adds to a stack's configuration file. The state has the same."""


def store(environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the address of the object store, such as `s3://BUCKET/PREFIX?region=REGION`; None: a folder is used.

    Raises:
        InvalidInput: it is no address of an object store, or contains credentials.
    """
    return _checked(environment, STORE, StateBackend, VOLUME)


def key(environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the key that encrypts secrets in a new state, such as `awskms://alias/NAME?region=REGION`.

    None: a passphrase of this user. Then no other machine can use the state.

    Raises:
        InvalidInput: it is no address of a key, or contains credentials.
    """
    return _checked(environment, KEY, SecretsProvider, PASSPHRASE)


def _checked(environment: Mapping[str, str], variable: str, kind: Any, unset: str) -> str | None:
    text = environment.get(variable)
    if not text or text == unset:
        return None
    try:
        found: str = TypeAdapter(kind).validate_python(text)
    except ValidationError as error:
        raise InvalidInput(f"{variable} {error.errors()[0]['msg'].removeprefix('Value error, ')}") from None
    return found
