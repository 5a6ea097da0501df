"""A program that runs in a pod, given to its Python as text: it reads and writes a cluster's volumes.

It needs nothing but the standard library, since the image of Jazz has nothing else, and may be of an earlier release.

    snapshot FILE       say `ready` once a consistent copy of a database exists, wait for a line, write the copy
    fingerprint FOLDER  write what changes with any file of the folder
    pack FOLDER         write the folder's files as an archive
    write FILE          replace a database by what is read
    unpack FOLDER       replace the content of a folder by an archive that is read

What is written and read is compressed.
"""

from __future__ import annotations

import fcntl
import gzip
import hashlib
import os
import shutil
import sqlite3
import sys
import tarfile
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

LEFT_OUT: Final = ("engine/home", "engine/resident", "verified")
"""What the Sentinel makes again: logs and sockets of its engine, and what it knows of live objects."""
LOCKS: Final = "/.pulumi/locks/"
LOST: Final = "lost+found"
"""A folder of the file system; only root may read it."""
CHUNK: Final = 1 << 16
SNAPSHOT: Final = "reside-snapshot-"
"""Beginning of the names of folders with copies that are not complete."""


def snapshot(database: Path) -> None:
    """Copy a database that others are writing, and write the copy.

    A complete copy has no name, so nothing can leave it behind. A killed process may leave its folder to the next one.
    """
    with own_folder() as folder:
        copy = folder / "copy.db"
        source, target = sqlite3.connect(f"file:{database}?mode=ro", uri=True), sqlite3.connect(copy)
        source.backup(target)
        target.close()
        source.close()
        file = copy.open("rb")
    with file:
        sys.stdout.buffer.write(b"ready\n")
        sys.stdout.buffer.flush()
        if sys.stdin.buffer.readline():
            with gzip.GzipFile(fileobj=sys.stdout.buffer, mode="wb", compresslevel=1) as out:
                shutil.copyfileobj(file, out, CHUNK)


@contextmanager
def own_folder() -> Iterator[Path]:
    """Make a folder that is deleted at the end; delete those of processes that were killed, which hold no lock."""
    parent = Path(tempfile.gettempdir())
    with ExitStack() as stack:
        with locked(parent):  # a folder that another process is about to lock is not free
            for old in parent.glob(f"{SNAPSHOT}*"):
                with locked(old, fcntl.LOCK_NB) as is_free:
                    if is_free:
                        shutil.rmtree(old)
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=SNAPSHOT)))
            stack.enter_context(locked(folder))
        yield folder


@contextmanager
def locked(folder: Path, option: int = 0) -> Iterator[bool]:
    """Hold the lock of a folder, which ends with this process; with `LOCK_NB`, yield whether it was free."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except FileNotFoundError:  # it was just deleted
        yield False
        return
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | option)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)


def fingerprint(folder: Path) -> None:
    """Write a digest of the names, sizes and times of all files."""
    found = []
    for path in files(folder):
        try:
            stat = path.stat()
        except FileNotFoundError:  # it was just removed: the next digest differs
            continue
        found.append((str(path), stat.st_ino, stat.st_mtime_ns, stat.st_size))
    sys.stdout.write(hashlib.sha256(repr(sorted(found)).encode()).hexdigest() + "\n")


def pack(folder: Path) -> None:
    """Write all files."""
    with (
        gzip.GzipFile(fileobj=sys.stdout.buffer, mode="wb", compresslevel=1) as out,
        tarfile.open(fileobj=out, mode="w|") as tar,
    ):
        for path in files(folder):
            try:
                file = path.open("rb")
            except FileNotFoundError:
                continue
            with file:  # one file, also if another takes its name meanwhile
                tar.addfile(tar.gettarinfo(arcname=str(path.relative_to(folder)), fileobj=file), file)


def files(folder: Path) -> Iterator[Path]:
    """Yield the files of a volume that a backup has."""
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        is_left_out = any(name.startswith(f"{prefix}/") for prefix in LEFT_OUT) or LOCKS in name
        if path.is_file() and not path.is_symlink() and not is_left_out:
            yield path


def write(database: Path) -> None:
    """Replace a database, and the files that SQLite keeps beside it."""
    draft = database.with_name(f"{database.name}.restoring")
    with draft.open("wb") as file, _input() as content:
        shutil.copyfileobj(content, file, CHUNK)
        file.flush()
        os.fsync(file.fileno())
    for suffix in ("-wal", "-shm", "-journal"):
        database.with_name(database.name + suffix).unlink(missing_ok=True)
    draft.replace(database)
    sync(database.parent)


def unpack(folder: Path) -> None:
    """Replace the content of a folder."""
    for path in folder.iterdir():
        if path.name == LOST:
            continue
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    with _input() as content, tarfile.open(fileobj=content, mode="r|") as tar:
        for member in tar:
            names = [PurePosixPath(name) for name in (member.name, member.linkname)]
            inside = not any(name.is_absolute() or ".." in name.parts for name in names)
            if not inside or not (member.isreg() or member.islnk()):  # the engine keeps links to files of the volume
                raise tarfile.ReadError(f"{member.name} is no file of a volume")
            tar.extract(member, folder)
    for path in (*folder.rglob("*"), folder):
        if folder / LOST not in (path, *path.parents):
            sync(path)


def sync(path: Path) -> None:
    """Sync a file or the names in a folder to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _input() -> gzip.GzipFile:
    return gzip.GzipFile(fileobj=sys.stdin.buffer, mode="rb")


if __name__ == "__main__":
    actions = {"snapshot": snapshot, "fingerprint": fingerprint, "pack": pack, "write": write, "unpack": unpack}
    try:
        actions[sys.argv[1]](Path(sys.argv[2]))
    except (EOFError, OSError, sqlite3.Error, tarfile.TarError) as error:
        sys.exit(f"{sys.argv[1]} {sys.argv[2]}: {error}")
