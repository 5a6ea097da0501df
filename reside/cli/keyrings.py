"""The system's keyring as a place for secrets ; `reside.cli.vault` uses it."""

from __future__ import annotations

import keyring
import keyring.backends.fail
import keyring.errors

from reside.cli.secret_store import SERVICE


class KeyringStore:
    """The operating system's keyring."""

    def read(self, name: str) -> str | None:
        """The value of this name, or None."""
        return keyring.get_password(SERVICE, name)

    def create(self, name: str, value: str) -> str:
        """Keep ``value`` unless there is one already."""
        kept = self.read(name)
        if kept is None:
            keyring.set_password(SERVICE, name, value)
            return value
        return kept


def keyring_works() -> bool:
    """Whether this machine has a keyring that answers; a headless one has none."""
    if isinstance(keyring.get_keyring(), keyring.backends.fail.Keyring):
        return False
    try:
        keyring.get_password(SERVICE, "probe")
    except keyring.errors.KeyringError:
        return False
    return True
