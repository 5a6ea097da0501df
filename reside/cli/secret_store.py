"""Where secrets of this user are stored: the interface, and private files for machines without a keyring.

Invariant: a file has mode 0600 and is never overwritten.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from reside.common.files import create_private
from reside.model.errors import InvalidInput

if TYPE_CHECKING:
    from pathlib import Path

SERVICE: Final = "reside"
"""The service name under which a keyring stores our values."""


class Store(Protocol):
    """A store of this user's values."""

    def read(self, name: str) -> str | None:
        """Return the value with this name, or None."""

    def create(self, name: str, value: str) -> str:
        """Store `value` unless there is one already; return the one that is stored."""


class FileStore:
    """Files of mode 0600 in the configuration folder, for machines without a keyring."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, name: str) -> Path:
        """Return the file that contains the value with this name."""
        return self._folder / f"{name}.key"

    def read(self, name: str) -> str | None:
        """Return the value with this name, or None.

        Raises:
            InvalidInput: other users may read the file.
        """
        path = self.path(name)
        try:
            mode = path.stat().st_mode
        except FileNotFoundError:
            return None
        if mode & 0o077:
            raise InvalidInput(
                f"other users may read {path}: run `chmod 600 {path}`, or remove it and everything encrypted with it"
            )
        return path.read_text().strip()

    def create(self, name: str, value: str) -> str:
        """Store `value` atomically unless there is one already; return the one that is stored."""
        while not create_private(self.path(name), value + "\n"):
            stored = self.read(name)
            if stored is not None:  # else it was removed in the meantime
                return stored
        return value
