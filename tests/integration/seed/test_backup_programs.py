"""What a backup runs in pods, run here: a consistent copy of a database that is written, and a copy of a volume."""

from __future__ import annotations

import gzip
import io
import sqlite3
import subprocess
import sys
import tarfile
import threading
from importlib.resources import files
from pathlib import Path

import pytest

from reside.seed.backups.pods import LOADER

SOURCE = files("reside.seed.backups").joinpath("in_pod.py").read_text()
FIRST_LINE = f"{SOURCE!r}\n".encode()


def run(action: str, path: Path, given: bytes = b"", *, code: int = 0) -> bytes:
    """Run an action as a pod does, and return its output."""
    command = [sys.executable, "-c", LOADER, action, str(path)]
    done = subprocess.run(command, input=FIRST_LINE + given, capture_output=True, check=False, timeout=60)
    assert done.returncode == code, done.stderr.decode()
    return done.stdout if code == 0 else done.stderr


def test_a_database_is_copied_consistently_while_it_is_written(tmp_path: Path) -> None:
    database, stop = tmp_path / "jazz.db", threading.Event()
    connection = sqlite3.connect(database, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE first (value BLOB)")
    connection.execute("CREATE TABLE second (value BLOB)")
    connection.commit()

    def write() -> None:
        while not stop.is_set():
            connection.execute("INSERT INTO first VALUES (randomblob(4000))")
            connection.execute("INSERT INTO second SELECT value FROM first ORDER BY rowid DESC LIMIT 1")
            connection.commit()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        copies = [run("snapshot", database, b"\n") for _ in range(3)]
    finally:
        stop.set()
        writer.join()
        connection.close()
    sizes = [_restored(tmp_path / f"{number}", copy) for number, copy in enumerate(copies)]
    assert 0 < sizes[0] < sizes[-1]


def _restored(folder: Path, copy: bytes) -> int:
    """Restore a copy over another database, and check it; return how many rows it has."""
    folder.mkdir()
    database = folder / "jazz.db"
    database.write_bytes(b"an interrupted restore")
    Path(f"{database}-wal").write_bytes(b"of another one")
    ready, _, content = copy.partition(b"\n")
    assert ready == b"ready"
    run("write", database, content)
    assert {path.name for path in folder.iterdir()} == {"jazz.db"}
    with sqlite3.connect(database) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        first, second = (
            connection.execute(f"SELECT count(*), max(rowid) FROM {table}").fetchone()  # noqa: S608 - no input
            for table in ("first", "second")
        )
    connection.close()
    assert first == second
    return int(first[0])


def test_a_snapshot_that_nobody_wants_any_more_ends_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    sqlite3.connect(tmp_path / "jazz.db").execute("CREATE TABLE any (value)")
    assert run("snapshot", tmp_path / "jazz.db") == b"ready\n"
    assert list(temporary.iterdir()) == []


def test_a_snapshot_removes_the_folder_of_a_killed_one_and_not_that_of_a_running_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    sqlite3.connect(tmp_path / "jazz.db").execute("CREATE TABLE any (value)")
    copying = (
        "from reside.seed.backups.in_pod import own_folder\nwith own_folder() as made: print(made, flush=True); input()"
    )
    started = [
        subprocess.Popen([sys.executable, "-c", copying], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    with started[0] as killed, started[1] as running:
        assert killed.stdout is not None
        assert running.stdout is not None
        left, kept = Path(killed.stdout.readline().strip()), Path(running.stdout.readline().strip())
        (left / "copy.db").write_bytes(b"half of it")
        killed.kill()
        killed.wait()
        assert run("snapshot", tmp_path / "jazz.db") == b"ready\n"
        assert list(temporary.iterdir()) == [kept]
        running.communicate("\n")
    assert list(temporary.iterdir()) == []


def test_a_missing_database_is_an_error_that_names_it(tmp_path: Path) -> None:
    said = run("snapshot", tmp_path / "jazz.db", code=1).decode()
    assert said == f"snapshot {tmp_path / 'jazz.db'}: unable to open database file\n"


def volume(folder: Path) -> Path:
    """Write some files of a Sentinel's volume, among them such that a backup leaves out."""
    for name in ("stacks/a.json", "vault/salt", "engine/workspaces/a/Pulumi.yaml", "prune.json", *LEFT_OUT):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    (folder / "vault/salt").chmod(0o600)
    return folder


LEFT_OUT = (
    "engine/home/logs/log",
    "engine/resident/a/engine.log",
    "engine/workspaces/a/.pulumi/locks/organization/a.json",
    "verified/a.verified",
)


def test_a_volume_is_restored_without_what_the_sentinel_makes_again(tmp_path: Path) -> None:
    before = volume(tmp_path / "before")
    (before / "vault/salt.synced").hardlink_to(before / "vault/salt")
    packed = run("pack", before)
    after = tmp_path / "after"
    (after / "stacks/half").mkdir(parents=True)
    (after / "stacks/half/restored.json").write_text("by an interrupted restore")
    (after / "lost+found").mkdir()
    (after / "lost+found/socket").symlink_to("nowhere")  # as unreadable as that folder is for who is not root
    run("unpack", after, packed)
    found = {path.relative_to(after).as_posix(): path.read_text() for path in after.rglob("*") if path.is_file()}
    expected = ("stacks/a.json", "vault/salt", "engine/workspaces/a/Pulumi.yaml", "prune.json")
    assert found == {name: name for name in expected} | {"vault/salt.synced": "vault/salt"}
    assert (after / "vault/salt.synced").samefile(after / "vault/salt")
    assert (after / "vault/salt").stat().st_mode & 0o777 == 0o600
    assert (after / "lost+found").exists()


@pytest.mark.parametrize("name", ["../outside", "/outside", "a/../../outside", "link", "hard link"])
def test_a_hostile_archive_writes_nothing_outside_of_the_volume(tmp_path: Path, name: str) -> None:
    volume, outside = tmp_path / "volume", tmp_path / "outside"
    volume.mkdir()
    member = tarfile.TarInfo(name.replace("/outside", str(outside)) if name.startswith("/") else name)
    if name.endswith("link"):
        member.type, member.linkname = tarfile.SYMTYPE if name == "link" else tarfile.LNKTYPE, str(outside)
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        tar.addfile(member, io.BytesIO())
    assert b"is no file of a volume" in run("unpack", volume, packed.getvalue(), code=1)
    assert not outside.exists()
    assert list(volume.iterdir()) == []


def test_a_part_that_was_cut_is_an_error(tmp_path: Path) -> None:
    packed = run("pack", volume(tmp_path / "before"))
    (tmp_path / "after").mkdir()
    assert b"unpack" in run("unpack", tmp_path / "after", packed[:-20], code=1)
    assert b"write" in run("write", tmp_path / "jazz.db", gzip.compress(b"x")[:-4], code=1)
    assert not (tmp_path / "jazz.db").exists()


def test_a_fingerprint_changes_with_what_a_backup_has_and_with_nothing_else(tmp_path: Path) -> None:
    folder = volume(tmp_path / "volume")
    first = run("fingerprint", folder)
    assert first == run("fingerprint", folder)
    for name in LEFT_OUT:
        (folder / name).write_text("changed")
    assert run("fingerprint", folder) == first
    draft = folder / "stacks/a.draft"
    draft.write_text("stacks/b.json")
    draft.replace(folder / "stacks/a.json")
    assert run("fingerprint", folder) != first
