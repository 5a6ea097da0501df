"""The images of a release: an archive (OCI image layout) that `make release` writes, unpacked and pushed as they are.

Every content is compared with its digest while it is unpacked.
"""

from __future__ import annotations

import hashlib
import json
import re
import tarfile
import zlib
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Final

from reside.model.errors import InvalidInput
from reside.registry import FileBlob, ImageReference, InvalidReference

if TYPE_CHECKING:
    from pathlib import Path

    from reside.registry import RegistryClient

NAME_ANNOTATION: Final = "org.opencontainers.image.ref.name"
_INDEX: Final = "index.json"
_BLOB: Final = re.compile(r"blobs/sha256/([0-9a-f]{64})")
_CHUNK: Final = 1 << 20


@dataclass(frozen=True)
class ArchivedImage:
    """An image of the archive: its name with a tag, its manifest, and the blobs that this names."""

    reference: ImageReference
    manifest: FileBlob
    media_type: str
    blobs: tuple[FileBlob, ...]

    @property
    def name(self) -> str:
        """The short name by which the bootstrap knows the image."""
        return self.reference.repository.rpartition("/")[2]

    async def push(self, client: RegistryClient) -> str:
        """Push the image under the tag `latest`; return its identity by digest."""
        content = self.manifest.path.read_bytes()
        digest = await client.push_as_is(self.reference.tagged("latest"), content, self.media_type, self.blobs)
        return str(self.reference.pinned(digest))


def unpack(archive: Path, folder: Path) -> list[ArchivedImage]:
    """Unpack an archive into an empty folder; return its images.

    Raises:
        InvalidInput: it can't be read, is damaged, or lacks something.
    """
    blobs: dict[str, FileBlob] = {}
    index: bytes | None = None
    try:
        with tarfile.open(archive, "r|*") as tar:
            for member in tar:
                content = tar.extractfile(member) if member.isfile() else None
                if content is None:
                    continue
                if member.name == _INDEX:
                    index = content.read()
                elif match := _BLOB.fullmatch(member.name):
                    blob = _extract(content, folder / match[1])
                    blobs[f"sha256:{match[1]}"] = blob
        entries = json.loads(index or b"{}")["manifests"]
        return [_image(entry, blobs) for entry in entries]
    except OSError as error:
        if error.strerror is None:  # of gzip, for a file that is cut
            raise _damaged(archive) from None
        raise InvalidInput(f"{archive} can't be read: {error.strerror}") from None
    except (tarfile.TarError, EOFError, zlib.error, ValueError, KeyError, TypeError, InvalidReference):
        raise _damaged(archive) from None


def _damaged(archive: Path) -> InvalidInput:
    return InvalidInput(f"{archive} is damaged, or is not the archive of a release's images: copy it again")


def _extract(content: IO[bytes], path: Path) -> FileBlob:
    """Write a blob to the file of its digest; a ValueError if it has another one."""
    found = hashlib.sha256()
    with path.open("wb") as file:
        while chunk := content.read(_CHUNK):
            found.update(chunk)
            file.write(chunk)
    if found.hexdigest() != path.name:
        raise ValueError(path.name)
    return FileBlob(path, f"sha256:{path.name}", path.stat().st_size)


def _image(entry: dict[str, Any], blobs: dict[str, FileBlob]) -> ArchivedImage:
    manifest = blobs[entry["digest"]]
    document = json.loads(manifest.path.read_bytes())
    parts = [document["config"]["digest"], *(layer["digest"] for layer in document["layers"])]
    reference = ImageReference.parse(entry["annotations"][NAME_ANNOTATION])
    return ArchivedImage(reference, manifest, entry["mediaType"], tuple(blobs[part] for part in dict.fromkeys(parts)))
