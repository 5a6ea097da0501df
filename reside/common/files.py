"""Write files atomically, readable by their owner only.

The content is written to a draft in the same folder and synced to the disk, the draft is renamed to the file's name,
and the folder is synced. So a reader finds either the old or the new content, also after a crash at any moment.
"""

from __future__ import annotations

import os
import re
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_SUFFIX: Final = ".draft"
_ABANDONED_S: Final = 3600.0
"""Age in seconds after which a draft was left by a killed process; writing one takes a fraction of a second."""
_DRAFT: Final = re.compile(rf"\..+\.[a-z0-9_]{{8}}{re.escape(_SUFFIX)}")
"""The names that `tempfile` makes of the arguments below."""
_examined: Final[dict[Path, float]] = {}
"""Folder → when it was searched for abandoned drafts last, by the monotonic clock."""


def write_private(path: Path, content: str | bytes, *, make_folder: bool = False, synced: bool = True) -> None:
    """Replace a file by one of mode 0600.

    Args:
        path: the file.
        content: all of it; text is encoded as UTF-8.
        make_folder: whether to create its folder (mode 0700). Not for a volume, which may not be mounted.
        synced: whether it survives a power loss; else, after one, its content may be any.

    Raises:
        OSError: the file can't be written; it is unchanged.
    """
    if make_folder:
        _make_folder(path.parent)
    with _draft(path, content, synced=synced) as draft:
        draft.replace(path)


def create_private(path: Path, content: str | bytes) -> bool:
    """Create a file of mode 0600, and its folder (mode 0700), unless the file exists; return whether it was created.

    Raises:
        OSError: the file can't be created.
    """
    _make_folder(path.parent)
    with _draft(path, content) as draft:
        try:
            path.hardlink_to(draft)  # fails if the file exists; a rename would replace it
        except FileExistsError:
            return False
    return True


@contextmanager
def new_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a draft of a file, of mode 0600, that becomes the file after the block, unless the block raised an error.

    Raises:
        FileExistsError: the file exists, maybe since the block began; it is unchanged.
        OSError: the file can't be written.
    """
    with _draft_file(path) as (file, draft):
        yield file
        _sync_file(file)
        path.hardlink_to(draft)  # fails if the file exists; a rename would replace it


@contextmanager
def _draft(path: Path, content: str | bytes, *, synced: bool = True) -> Iterator[Path]:
    """Write and sync the draft of a file; after the block, remove it if it is still there, and sync the folder."""
    with _draft_file(path, synced=synced) as (file, draft):
        file.write(content.encode() if isinstance(content, str) else content)
        if synced:
            _sync_file(file)
        else:
            file.flush()
        yield draft


@contextmanager
def _draft_file(path: Path, *, synced: bool = True) -> Iterator[tuple[IO[bytes], Path]]:
    """Open the draft of a file; after the block, remove it if it is still there, and sync the folder."""
    _remove_abandoned(path.parent)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=_SUFFIX)  # of mode 0600
    draft = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file, draft
    finally:
        draft.unlink(missing_ok=True)
    if synced:
        sync(path.parent)


def _sync_file(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


def _make_folder(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def _remove_abandoned(folder: Path) -> None:
    """Remove drafts of killed processes, because they may contain secrets.

    A folder with a thousand files is not read at each write: it is searched at the first one, and then once an hour.
    """
    now = time.monotonic()
    if now - _examined.get(folder, -_ABANDONED_S) < _ABANDONED_S:
        return
    for found in folder.iterdir():
        if _DRAFT.fullmatch(found.name):
            try:
                if time.time() - found.stat().st_mtime > _ABANDONED_S:
                    found.unlink()
            except (FileNotFoundError, PermissionError):
                continue  # its writer has just finished, or is another user: the folder may be /tmp
    _examined[folder] = now


def sync(path: Path) -> None:
    """Sync the content of a file, or the names in a folder, to the disk.

    Syncing a file does not sync its name, nor does syncing a folder sync its own (fsync(2)).
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
