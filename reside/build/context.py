"""Write a Docker build context, or a layer, as a reproducible tar.

Invariant: the owner of every file is root and every timestamp is zero, so equal content gives equal bytes. A Dockerfile
sets another owner with `COPY --chown`.
"""

from __future__ import annotations

import hashlib
import io
import tarfile
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_EXECUTABLE = 0o111


class Context:
    """A tar writer; the caller closes it. Parent folders of a file are added automatically."""

    def __init__(self, file: BinaryIO) -> None:
        self._tar = tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT)  # noqa: SIM115 - closed by close()
        self._folders: set[str] = set()

    def data(self, name: str, content: bytes, *, executable: bool = False) -> None:
        """Add a file with this content."""
        info = self._info(name, tarfile.REGTYPE, 0o755 if executable else 0o644)
        info.size = len(content)
        self._tar.addfile(info, io.BytesIO(content))

    def copy(self, name: str, source: Path, *, executable: bool | None = None) -> None:
        """Add a file of this machine; keep its execute bit unless `executable` says otherwise."""
        status = source.stat()
        runs = bool(status.st_mode & _EXECUTABLE) if executable is None else executable
        info = self._info(name, tarfile.REGTYPE, 0o755 if runs else 0o644)
        info.size = status.st_size
        with source.open("rb") as file:
            self._tar.addfile(info, file)

    def link(self, name: str, target: str) -> None:
        """Add a symbolic link."""
        info = self._info(name, tarfile.SYMTYPE, 0o777)
        info.linkname = target
        self._tar.addfile(info)

    def folder(self, name: str) -> None:
        """Add a folder, unless it was added before."""
        if name in self._folders:
            return
        self._folders.add(name)
        self._tar.addfile(self._info(name, tarfile.DIRTYPE, 0o755))

    def tree(self, name: str, source: Path, keep: Callable[[Path], bool] = lambda _path: True) -> None:
        """Add the files of a folder for which `keep` returns true; symbolic links are kept as links."""
        for path in files_in(source, keep):
            inner = f"{name}/{path.relative_to(source)}"
            if path.is_symlink():
                self.link(inner, str(path.readlink()))
            else:
                self.copy(inner, path)

    def close(self) -> None:
        """Finish the tar."""
        self._tar.close()

    def _info(self, name: str, kind: bytes, mode: int) -> tarfile.TarInfo:
        above, slash, _ = name.rpartition("/")
        if slash:
            self.folder(above)
        info = tarfile.TarInfo(name)
        info.type, info.mode = kind, mode
        return info


def files_in(folder: Path, keep: Callable[[Path], bool] = lambda _path: True) -> Iterator[Path]:
    """Yield all files and symbolic links below a folder, in a fixed order."""
    for path in sorted(folder.iterdir()):
        if path.is_dir() and not path.is_symlink():
            yield from files_in(path, keep)
        elif keep(path):
            yield path


def digest(*parts: str | bytes) -> str:
    """Return one SHA-256 over several values, each prefixed with its length to keep them apart."""
    state = hashlib.sha256()
    for part in parts:
        raw = part.encode() if isinstance(part, str) else part
        state.update(len(raw).to_bytes(8, "big") + raw)
    return state.hexdigest()


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
