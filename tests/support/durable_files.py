"""What of a folder survives a power loss: a model of what `fsync` guarantees, fed by the calls of this process.

A file that was synced has the content of that moment; any other one is empty or has some of its content. A name exists
after a loss if its folder was synced since the name was given. What is not guaranteed may survive nevertheless.
"""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

_HALF = 0.5


class Entry(NamedTuple):
    """A name in a folder. In an overlay file system, a file and a folder may have the same inode."""

    inode: int
    is_folder: bool


@dataclass
class DurableFiles:
    """The durable content of a folder, which itself exists.

    Attributes:
        folder: the folder.
        contents: inode of a file → its content when it was synced last.
        names: inode of a folder → its entries when it was synced last.
    """

    folder: Path
    contents: dict[int, bytes] = field(default_factory=dict)
    names: dict[int, dict[str, Entry]] = field(default_factory=dict)
    held: list[int] = field(default_factory=list)
    """Descriptors of what is in `contents` and `names`, so that nothing else gets its inode."""

    def synced(self, descriptor: int) -> None:
        """Note that a file or a folder was synced."""
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        if not path.is_relative_to(self.folder):
            return
        found = os.fstat(descriptor)
        self.held.append(os.dup(descriptor))
        if stat.S_ISDIR(found.st_mode):
            self.names[found.st_ino] = _entries(path)
            for entry in path.iterdir():
                with suppress(FileNotFoundError):  # the engine has just removed it
                    if stat.S_IFMT(entry.lstat().st_mode) in (stat.S_IFREG, stat.S_IFDIR):
                        self.held.append(os.open(entry, os.O_RDONLY))
        else:
            self.contents[found.st_ino] = path.read_bytes()

    def lose_power(self, source: random.Random | None = None) -> None:
        """Replace the folder by what a power loss leaves.

        Args:
            source: chooses what survives although nothing guarantees it; without it, nothing of that does.
        """
        present = _Present(self.folder)
        after = self.folder.with_name(f"{self.folder.name}.after")
        self._leave(self.folder.stat().st_ino, after, present, source)
        shutil.rmtree(self.folder)
        after.rename(self.folder)
        self.settle()

    def settle(self) -> None:
        """Note that all that is there is on the disk, as it is after some time."""
        self.close()
        left = _Present(self.folder)
        self.contents = {inode: path.read_bytes() for inode, path in left.files.items()}
        self.names = {inode: _entries(path) for inode, path in left.folders.items()}
        self.held = [os.open(path, os.O_RDONLY) for path in (*left.files.values(), *left.folders.values())]

    def close(self) -> None:
        """Close what is held open."""
        for descriptor in self.held:
            os.close(descriptor)
        self.held.clear()

    def _leave(self, inode: int, target: Path, present: _Present, source: random.Random | None) -> None:
        """Write what is left of a folder to another one."""
        target.mkdir(mode=0o700)
        durable = self.names.get(inode, {})
        now = _entries(present.folders[inode]) if inode in present.folders else durable
        for name in sorted(durable.keys() | now.keys()):
            chosen = durable if source is None or source.random() < _HALF else now
            if (found := chosen.get(name)) is None:
                continue
            inode, is_folder = found
            if is_folder:
                self._leave(inode, target / name, present, source)
            elif inode in present.files or inode in self.contents:
                (target / name).write_bytes(self._content(inode, present, source))
                (target / name).chmod(0o600)

    def _content(self, inode: int, present: _Present, source: random.Random | None) -> bytes:
        durable = self.contents.get(inode, b"")
        if source is None or inode not in present.files or source.random() < _HALF:
            return durable
        whole = present.files[inode].read_bytes()
        return whole if inode in self.contents else whole[: source.randrange(len(whole) + 1)]

    @contextmanager
    def following(self) -> Iterator[None]:
        """Follow all calls of `fsync` while the block is open."""
        real = os.fsync

        def fsync(descriptor: int) -> None:
            real(descriptor)
            self.synced(descriptor)

        os.fsync = fsync  # type: ignore[assignment]
        try:
            yield
        finally:
            os.fsync = real


class _Present:
    """The files and folders below a folder, and itself, by inode; no links, pipes and sockets."""

    def __init__(self, folder: Path) -> None:
        self.files: dict[int, Path] = {}
        self.folders: dict[int, Path] = {}
        for path in (folder, *folder.rglob("*")):
            found = path.lstat()
            if stat.S_ISREG(found.st_mode):
                self.files[found.st_ino] = path
            elif stat.S_ISDIR(found.st_mode):
                self.folders[found.st_ino] = path


def _entries(folder: Path) -> dict[str, Entry]:
    return {path.name: Entry(path.lstat().st_ino, path.is_dir()) for path in folder.iterdir()}
