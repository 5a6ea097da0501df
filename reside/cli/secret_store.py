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

    def is_used(self) -> bool:
        """Return whether there is any value.

        Raises:
            InvalidInput: the folder can't be read.
        """
        try:
            return any(self._folder.glob("*.key"))
        except OSError as error:
            raise _unusable(self._folder, "read", error) from None

    def read(self, name: str) -> str | None:
        """Return the value with this name, or None.

        Raises:
            InvalidInput: other users may read the file, or it is no text.
        """
        path = self.path(name)
        try:
            mode = path.stat().st_mode
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unusable(path, "read", error) from None
        if mode & 0o077:
            raise InvalidInput(
                f"other users may read {path}: run `chmod 600 {path}`, or remove it and everything encrypted with it"
            )
        try:
            return path.read_text(encoding="ascii").strip()
        except UnicodeDecodeError:
            raise InvalidInput(
                f"{path} is damaged: restore it, or remove it and everything encrypted with it"
            ) from None

    def create(self, name: str, value: str) -> str:
        """Store `value` atomically unless there is one already; return the one that is stored.

        Raises:
            InvalidInput: the folder can't be written.
        """
        try:
            while not create_private(self.path(name), value + "\n"):
                stored = self.read(name)
                if stored is not None:  # else it was removed in the meantime
                    return stored
        except OSError as error:
            raise _unusable(self.path(name), "written", error) from None
        return value


def _unusable(path: Path, what: str, error: OSError) -> InvalidInput:
    return InvalidInput(
        f"{path} can't be {what}: {error.strerror}: correct that, or name another folder in RESIDE_CONFIG"
    )
