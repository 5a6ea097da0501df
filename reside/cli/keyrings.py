"""The operating system's keyring as a store of secrets for `reside.cli.vault`."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import keyring
import keyring.backends.fail
import keyring.errors

from reside.cli.secret_store import SERVICE
from reside.model.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterator


class KeyringStore:
    """The operating system's keyring."""

    def read(self, name: str) -> str | None:
        """Return the value with this name, or None.

        Raises:
            InvalidInput: the keyring can't be used now.
        """
        with _translated():
            return keyring.get_password(SERVICE, name)

    def create(self, name: str, value: str) -> str:
        """Store `value` unless there is one already; return the one that is stored.

        Raises:
            InvalidInput: the keyring can't be used now.
        """
        stored = self.read(name)
        if stored is None:
            with _translated():
                keyring.set_password(SERVICE, name, value)
            return value
        return stored


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except keyring.errors.KeyringError as error:
        raise InvalidInput(f"the keyring of this user can't be used: {error}: unlock it, and try again") from None


def keyring_works() -> bool:
    """Return whether this machine has a usable keyring; a headless machine has none."""
    if isinstance(keyring.get_keyring(), keyring.backends.fail.Keyring):
        return False
    try:
        keyring.get_password(SERVICE, "probe")
    except keyring.errors.KeyringError:
        return False
    return True
