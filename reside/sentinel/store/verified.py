"""Which live states agree with the desired objects, so that a new process does not ask the API server for each of them.

Each stack has one file with a fingerprint for each of its objects (`reside.sentinel.guard.drift`). A fingerprint covers
the desired and the live object, so an entry is true for ever or matches nothing; an entry that is missing costs one
request. The files are encrypted, since the fingerprint of a Secret would let guesses of its value be checked. They are
read once, and again only if another process has written them; a file that can't be decrypted is ignored. So they are
not synced to the disk: what a power loss takes costs requests.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, Final

import structlog

from reside.model.errors import ResideError
from reside.sentinel.store.stacks import Signature, signature, write_file

if TYPE_CHECKING:
    from collections.abc import Container, Mapping
    from pathlib import Path

    from reside.sentinel.store.vault import Vault

_log = structlog.get_logger(__name__)
_SUFFIX: Final = ".verified"


class VerifiedStates:
    """The files of fingerprints.

    Args:
        folder: their folder; made by the first write.
        vault: encrypts them.
    """

    def __init__(self, folder: Path, vault: Vault) -> None:
        self._folder = folder
        self._vault = vault
        self._files: dict[str, Signature] = {}
        """Name of a stack → its file, as it was read or written last."""

    def load(self, stack: str) -> dict[str, str]:
        """Return the fingerprints of a stack by `Kind/name`; empty if its file was not changed by another process."""
        path = self._path(stack)
        present = signature(path)
        if present is None or present == self._files.get(stack):
            return {}
        self._files[stack] = present
        try:
            found: Any = json.loads(self._vault.unseal(path.read_bytes()))
        except (OSError, ValueError, ResideError) as error:
            _log.warning("ignoring unreadable fingerprints; each object is verified again", of=stack, error=repr(error))
            return {}
        return {str(key): str(value) for key, value in found.items()} if isinstance(found, dict) else {}

    def keep_only(self, stacks: Container[str]) -> None:
        """Remove the files of all other stacks."""
        for path in self._folder.glob(f"*{_SUFFIX}"):
            if path.stem not in stacks:
                path.unlink(missing_ok=True)

    async def save(self, stack: str, fingerprints: Mapping[str, str]) -> None:
        """Store the fingerprints of a stack, outside of the event loop; without any, remove its file.

        Raises:
            NotReady: the volume can't be written.
        """
        content = json.dumps(dict(fingerprints)).encode() if fingerprints else None
        await asyncio.to_thread(self._write, stack, content)

    def _write(self, stack: str, content: bytes | None) -> None:
        path = self._path(stack)
        if content is None:
            path.unlink(missing_ok=True)
            self._files.pop(stack, None)
            return
        self._folder.mkdir(mode=0o700, exist_ok=True)
        write_file(path, self._vault.seal(content), synced=False)
        if (written := signature(path)) is not None:
            self._files[stack] = written

    def _path(self, stack: str) -> Path:
        return self._folder / f"{stack}{_SUFFIX}"
