"""Where secrets of this user are kept: the interface, and private files for machines without a keyring.

Invariant: a file has mode 0600 and is never overwritten.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from reside.common.files import create_private
from reside.model.errors import InvalidInput

if TYPE_CHECKING:
    from pathlib import Path

SERVICE: Final = "reside"
"""The name under which a keyring stores our values."""


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
        while not create_private(self.path(name), value + "\n"):
            kept = self.read(name)
            if kept is not None:  # else it was removed in between
                return kept
        return value
