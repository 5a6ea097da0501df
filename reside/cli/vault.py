"""Encryption of secrets on the operator's machine, with one key for each user.

The key is in the system keyring or, without one, in a private file.

Invariants: the file has mode 0600 and is never overwritten. An existing key file is used even if a keyring becomes
available later, so that encrypted values stay readable.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from nacl.exceptions import CryptoError
from nacl.secret import SecretBox
from nacl.utils import random

from reside.cli.config import config_folder
from reside.cli.secret_store import FileStore, Store
from reside.model.errors import InvalidInput

if TYPE_CHECKING:
    from pathlib import Path


def store() -> Store:
    """Return the store of this user: files if a key file exists, else the keyring if it works, else files.

    Raises:
        InvalidInput: the configuration's folder can't be read.
    """
    files = FileStore(config_folder())
    if files.is_used():
        return files
    from reside.cli import keyrings  # noqa: PLC0415 - the search for keyrings takes 0.2 seconds

    return keyrings.KeyringStore() if keyrings.keyring_works() else files


class Vault:
    """Encryption and decryption with this user's key (XSalsa20-Poly1305), which is created at first use."""

    def __init__(self, values: Store | None = None) -> None:
        self._store = values or store()

    def encrypt(self, secret: str) -> str:
        """Return nonce, tag and cipher text in base64."""
        return base64.b64encode(bytes(self._box().encrypt(secret.encode()))).decode()

    def decrypt(self, encrypted: str, what: str) -> str:
        """Return the decrypted secret.

        Raises:
            InvalidInput: it was encrypted with another key; the message begins with `what`.
        """
        try:
            return self._box().decrypt(base64.b64decode(encrypted)).decode()
        except (CryptoError, ValueError):
            raise InvalidInput(
                f"{what} can't be decrypted with this user's key: restore the former key, or create a new account"
            ) from None

    def _box(self) -> SecretBox:
        key = self._store.read("secrets")
        if key is None:
            key = self._store.create("secrets", base64.b64encode(random(SecretBox.KEY_SIZE)).decode())
        try:
            return SecretBox(base64.b64decode(key))
        except (CryptoError, ValueError):
            raise InvalidInput(
                "the key of this user, `secrets.key` or the entry `secrets` of the keyring, is damaged: restore it, or "
                "remove it and create the accounts again"
            ) from None


def passphrase_file() -> Path | None:
    """Return the file that contains the bootstrap's passphrase; None if the keyring contains it."""
    current = store()
    return current.path("passphrase") if isinstance(current, FileStore) else None


def bootstrap_passphrase(values: Store | None = None) -> str:
    """Return the passphrase of the bootstrap's Pulumi state, which is created at first use."""
    chosen = values or store()
    return chosen.read("passphrase") or chosen.create("passphrase", base64.b64encode(random(24)).decode())
