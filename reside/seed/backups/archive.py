"""The members of a backup, as a tar archive inside of the encrypted stream.

A large member is split into parts, because its size is known only at its end. The last member, the manifest, has the
size and SHA-256 of all others, and says what the backup is of.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from dataclasses import asdict, dataclass, field
from typing import IO, TYPE_CHECKING, Any, Final

from reside.model.errors import InvalidInput
from reside.seed.backups.sealing import BLOCK, Opener, Sealer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from pydantic import SecretStr

PART: Final = 4 << 20
"""Bytes of a part; a part is kept in memory."""
OBJECTS: Final = "objects.json"
JAZZ: Final = "jazz"
SENTINEL: Final = "sentinel"
_MANIFEST: Final = "manifest.json"


@dataclass(frozen=True)
class Manifest:
    """What a backup is of.

    Attributes:
        id: random; tells backups from each other.
        created: time of the backup, in UTC.
        namespace: namespace of the cluster.
        alpha: account of the cluster's Alpha.
        members: name of each other member → its size and SHA-256.
    """

    id: str
    created: str
    namespace: str
    alpha: str
    members: dict[str, tuple[int, str]] = field(default_factory=dict)


class ArchiveWriter:
    """Write a backup.

    Args:
        file: receives the bytes.
        passphrase: encrypts them.
    """

    def __init__(self, file: IO[bytes], passphrase: SecretStr) -> None:
        self._sealer = Sealer(file, passphrase)
        output: Any = self._sealer  # tarfile only writes to it
        self._tar = tarfile.open(fileobj=output, mode="w|", bufsize=BLOCK)  # noqa: SIM115 - see finish
        self._members: dict[str, tuple[int, str]] = {}

    def add(self, name: str, content: bytes) -> None:
        """Add a member."""
        self._add(name, content)
        self._members[name] = _summary(content)

    async def add_parts(self, name: str, chunks: AsyncIterator[bytes]) -> None:
        """Add a member of any size as parts `name/000000` and so on."""
        part, number = bytearray(), 0
        async for chunk in chunks:
            part += chunk
            while len(part) >= PART:
                self.add(_part(name, number), bytes(part[:PART]))
                del part[:PART]
                number += 1
        self.add(_part(name, number), bytes(part))

    def finish(self, manifest: Manifest) -> None:
        """Add the manifest, with what was added, and the end."""
        document = {**asdict(manifest), "members": self._members}
        self._add(_MANIFEST, json.dumps(document).encode())
        self._tar.close()
        self._sealer.finish()

    def _add(self, name: str, content: bytes) -> None:
        info = tarfile.TarInfo(name)
        info.size = len(content)
        self._tar.addfile(info, io.BytesIO(content))


class Archive:
    """A backup in a file, which is read as often as needed.

    Args:
        path: the file.
        passphrase: that of the backup.
    """

    def __init__(self, path: Path, passphrase: SecretStr) -> None:
        self._path = path
        self._passphrase = passphrase

    def check(self) -> tuple[Manifest, list[dict[str, Any]]]:
        """Read the whole file; return the manifest and the objects.

        Raises:
            InvalidInput: the file is no backup, is damaged or cut, or has another version or passphrase.
            OSError: the file can't be read.
        """
        found: dict[str, tuple[int, str]] = {}
        kept: dict[str, bytes] = {}
        for name, content in self._read():
            if name in (OBJECTS, _MANIFEST):
                kept[name] = content
            if name != _MANIFEST:
                found[name] = _summary(content)
        try:
            document = json.loads(kept[_MANIFEST])
            members = {name: (int(size), str(digest)) for name, (size, digest) in document.pop("members").items()}
            manifest = Manifest(**document, members=members)
            objects = json.loads(kept[OBJECTS])
        except (LookupError, TypeError, ValueError):
            raise self._damaged("its list of contents is missing") from None
        if found != manifest.members:
            raise self._damaged("its contents differ from their list")
        return manifest, objects

    def parts(self, name: str) -> Iterator[bytes]:
        """Yield the parts of a member, in their order."""
        for member, content in self._read():
            if member.startswith(f"{name}/"):
                yield content

    def _read(self) -> Iterator[tuple[str, bytes]]:
        with self._path.open("rb") as file:
            opener = Opener(file, str(self._path), self._passphrase)
            content: Any = opener  # tarfile only reads from it
            try:
                with tarfile.open(fileobj=content, mode="r|", bufsize=BLOCK) as tar:
                    for info in tar:
                        member = tar.extractfile(info)
                        yield info.name, member.read() if member is not None else b""
                while opener.read(PART):  # tar stops at its end mark; the checksums of what follows count, too
                    pass
            except tarfile.TarError:
                raise self._damaged("it has no archive") from None

    def _damaged(self, reason: str) -> InvalidInput:
        return InvalidInput(f"{self._path} is damaged: {reason}; copy it again, or use another backup")


def _part(name: str, number: int) -> str:
    return f"{name}/{number:06}"


def _summary(content: bytes) -> tuple[int, str]:
    return len(content), hashlib.sha256(content).hexdigest()
