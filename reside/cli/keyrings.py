"""The operating system's keyring as a store of secrets for `reside.cli.vault`."""

from __future__ import annotations

import keyring
import keyring.backends.fail
import keyring.errors

from reside.cli.secret_store import SERVICE


class KeyringStore:
    """The operating system's keyring."""

    def read(self, name: str) -> str | None:
        """Return the value with this name, or None."""
        return keyring.get_password(SERVICE, name)

    def create(self, name: str, value: str) -> str:
        """Store `value` unless there is one already; return the one that is stored."""
        stored = self.read(name)
        if stored is None:
            keyring.set_password(SERVICE, name, value)
            return value
        return stored


def keyring_works() -> bool:
    """Return whether this machine has a usable keyring; a headless machine has none."""
    if isinstance(keyring.get_keyring(), keyring.backends.fail.Keyring):
        return False
    try:
        keyring.get_password(SERVICE, "probe")
    except keyring.errors.KeyringError:
        return False
    return True
