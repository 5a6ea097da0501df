"""Secrets at rest on the operator's machine: one key a user, in the system keyring or, without one, in a private file.

Invariants: the file has mode 0600 and is never overwritten; whoever held a key before keeps it, so nothing encrypted
becomes unreadable because a keyring appeared later.
"""

from __future__ import annotations

import base64
import os
from typing import TYPE_CHECKING, Protocol

from nacl.exceptions import CryptoError
from nacl.secret import SecretBox
from nacl.utils import random

from reside.cli.config import config_folder
from reside.model.errors import InvalidInput

if TYPE_CHECKING:
    from pathlib import Path

SERVICE = "reside"
"""The name under which a keyring keeps them."""


class Store(Protocol):
    """Where values of this user are kept."""

    def read(self, name: str) -> str | None:
        """The value of this name, or None."""

    def create(self, name: str, value: str) -> str:
        """Keep ``value`` unless there is one already; returns the one that is kept."""


class FileStore:
    """Files of mode 0600 in the configuration folder, for machines without a keyring."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, name: str) -> Path:
        """The file that holds the value of this name."""
        return self._folder / f"{name}.key"

    def read(self, name: str) -> str | None:
        """The value of this name, or None.

        Raises:
            InvalidInput: others than its owner may read the file.
        """
        path = self.path(name)
        try:
            mode = path.stat().st_mode
        except FileNotFoundError:
            return None
        if mode & 0o077:
            raise InvalidInput(f"{path} may be read by others: chmod 600 it, or remove it and what it encrypts")
        return path.read_text().strip()

    def create(self, name: str, value: str) -> str:
        """Keep ``value`` unless there is one already; the file appears complete or not at all."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = self._folder / f".{name}.{os.getpid()}"
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(value + "\n")
        try:
            os.link(draft, self.path(name))
        except FileExistsError:
            kept = self.read(name)
            if kept is not None:
                return kept
            raise
        finally:
            draft.unlink()
        return value


def store() -> Store:
    """The store of this user: files that exist win, then the keyring, then files."""
    files = FileStore(config_folder())
    if any(config_folder().glob("*.key")):
        return files
    from reside.cli import keyrings  # noqa: PLC0415 - looking for keyrings takes a fifth of a second

    return keyrings.KeyringStore() if keyrings.keyring_works() else files


class Vault:
    """Encrypts and decrypts with this user's key (XSalsa20-Poly1305), made at first use."""

    def __init__(self, values: Store | None = None) -> None:
        self._store = values or store()

    def encrypt(self, secret: str) -> str:
        """Base64 of nonce, tag and cipher text."""
        return base64.b64encode(bytes(self._box().encrypt(secret.encode()))).decode()

    def decrypt(self, encrypted: str, what: str) -> str:
        """The secret back.

        Raises:
            InvalidInput: it was encrypted with another key; ``what`` names it in the message.
        """
        try:
            return self._box().decrypt(base64.b64decode(encrypted)).decode()
        except (CryptoError, ValueError):
            raise InvalidInput(
                f"{what} was encrypted with another key than this user's: restore the key, or create a new account"
            ) from None

    def _box(self) -> SecretBox:
        key = self._store.read("secrets")
        if key is None:
            key = self._store.create("secrets", base64.b64encode(random(SecretBox.KEY_SIZE)).decode())
        return SecretBox(base64.b64decode(key))


def passphrase_file() -> Path | None:
    """The file that holds the root passphrase; None if the keyring does."""
    kept = store()
    return kept.path("passphrase") if isinstance(kept, FileStore) else None


def root_passphrase(values: Store | None = None) -> str:
    """The passphrase of the root stacks' state, made at first use."""
    kept = values or store()
    return kept.read("passphrase") or kept.create("passphrase", base64.b64encode(random(24)).decode())
