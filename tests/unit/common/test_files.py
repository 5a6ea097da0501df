"""A private file is written as a whole or not at all, and only its owner may read it."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from reside.common.files import create_private, write_private

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

DIES = """
import os, signal, sys
from pathlib import Path
from reside.common import files

def die(*arguments, **options):
    os.kill(os.getpid(), signal.SIGKILL)

path, function, step = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
target, name = {"fsync": (os, "fsync"), "replace": (Path, "replace"), "hardlink_to": (Path, "hardlink_to")}[step]
setattr(target, name, die)
getattr(files, function)(path, "new content")
"""


def killed_writer(path: Path, function: str, step: str) -> None:
    """Run a process that is killed in the middle of a write."""
    result = subprocess.run([sys.executable, "-c", DIES, path, function, step], check=False)
    assert result.returncode == -signal.SIGKILL


def test_a_written_file_has_the_content_and_is_private(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    write_private(path, "grüße", make_folder=True)
    assert path.read_bytes() == "grüße".encode()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert list(path.parent.iterdir()) == [path]


def test_a_missing_folder_is_an_error_unless_it_shall_be_created(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_private(tmp_path / "missing" / "file", "content")


def test_a_file_that_others_may_read_becomes_private(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o644)
    write_private(path, b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_killed_writer_leaves_the_old_content(tmp_path: Path, step: str) -> None:
    path = tmp_path / "file"
    write_private(path, "old content")
    killed_writer(path, "write_private", step)
    assert path.read_text() == "old content"


@pytest.mark.parametrize("step", ["fsync", "hardlink_to"])
def test_a_killed_creator_leaves_no_file(tmp_path: Path, step: str) -> None:
    path = tmp_path / "file"
    killed_writer(path, "create_private", step)
    assert not path.exists()
    assert create_private(path, "later")


def test_an_old_draft_of_a_killed_writer_is_removed_and_one_being_written_is_not(tmp_path: Path) -> None:
    old, young = tmp_path / "old", tmp_path / "young"
    for path in (old, young):
        killed_writer(path, "write_private", "replace")
    [old_draft] = tmp_path.glob(".old.*")
    [young_draft] = tmp_path.glob(".young.*")
    long_ago = time.time() - 7200
    os.utime(old_draft, (long_ago, long_ago))
    write_private(tmp_path / "new", "new")
    assert set(tmp_path.iterdir()) == {tmp_path / "new", young_draft}


def test_an_old_draft_of_another_user_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in /tmp, where an operator may write a backup."""
    killed_writer(tmp_path / "theirs", "write_private", "replace")
    [theirs] = tmp_path.iterdir()
    os.utime(theirs, (0, 0))
    unlink = type(tmp_path).unlink

    def refuse(path: Path, missing_ok: bool = False) -> None:
        if path == theirs:
            raise PermissionError(1, "Operation not permitted")
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(type(tmp_path), "unlink", refuse)
    write_private(tmp_path / "ours", "new")
    assert set(tmp_path.iterdir()) == {theirs, tmp_path / "ours"}


def test_a_folder_is_searched_for_drafts_once_an_hour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    searched = []
    now = time.monotonic()

    def iterdir(folder: Path) -> list[Path]:
        searched.append(folder)
        return []

    monkeypatch.setattr(type(tmp_path), "iterdir", iterdir)
    for index in range(10):
        write_private(tmp_path / str(index), "a thousand files take no longer than one")
    assert searched == [tmp_path]
    monkeypatch.setattr(time, "monotonic", lambda: now + 3601)
    write_private(tmp_path / "later", "")
    assert searched == [tmp_path, tmp_path]


def test_a_failed_write_leaves_the_old_content_and_no_draft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    write_private(path, "old")

    def fail(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space left"):
        write_private(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("write", [write_private, create_private])
def test_file_and_folder_are_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[Path, str], object]
) -> None:
    synced: list[bool] = []

    def record(descriptor: int) -> None:
        synced.append(stat.S_ISDIR(os.fstat(descriptor).st_mode))

    monkeypatch.setattr(os, "fsync", record)
    write(tmp_path / "file", "content")
    assert synced == [False, True]


def test_a_file_that_may_be_lost_is_not_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _descriptor: pytest.fail("synced"))
    write_private(tmp_path / "file", "content", synced=False)
    assert (tmp_path / "file").read_text() == "content"


def test_creating_never_overwrites(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    assert create_private(path, "first")
    assert not create_private(path, "second")
    assert path.read_text() == "first"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(path.parent.iterdir()) == [path]
