"""Lock files of a killed engine: those of dead processes are removed, those of living ones stay."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from support.proc_files import write_stat

from reside.cli import crash
from reside.model.errors import Conflict

if TYPE_CHECKING:
    from pathlib import Path


def lock(state: Path, stack: str, text: str) -> Path:
    path = state / ".pulumi/locks/organization/reside" / stack / "lock.json"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return path


def test_the_lock_of_a_dead_engine_is_removed(tmp_path: Path) -> None:
    path = lock(tmp_path, "local", json.dumps({"pid": 7}))
    assert crash.remove_stale_locks(tmp_path, "local", tmp_path / "proc")
    assert not path.exists()


def test_the_lock_of_a_living_engine_stays(tmp_path: Path) -> None:
    path = lock(tmp_path, "local", json.dumps({"pid": 7}))
    write_stat(tmp_path / "proc", 7, "pulumi")
    assert not crash.remove_stale_locks(tmp_path, "local", tmp_path / "proc")
    assert path.exists()


def test_a_reused_process_id_does_not_keep_a_lock(tmp_path: Path) -> None:
    lock(tmp_path, "local", json.dumps({"pid": 7}))
    write_stat(tmp_path / "proc", 7, "bash")
    assert crash.remove_stale_locks(tmp_path, "local", tmp_path / "proc")


def test_a_zombie_engine_is_not_alive(tmp_path: Path) -> None:
    lock(tmp_path, "local", json.dumps({"pid": 7}))
    write_stat(tmp_path / "proc", 7, "pulumi", "Z")
    assert crash.remove_stale_locks(tmp_path, "local", tmp_path / "proc")


def test_an_incomplete_lock_file_is_removed(tmp_path: Path) -> None:
    path = lock(tmp_path, "local", "{")
    assert crash.remove_stale_locks(tmp_path, "local", tmp_path / "proc")
    assert not path.exists()


def test_locks_of_other_stacks_stay(tmp_path: Path) -> None:
    path = lock(tmp_path, "other", json.dumps({"pid": 7}))
    assert not crash.remove_stale_locks(tmp_path, "local", tmp_path / "proc")
    assert path.exists()


def test_incomplete_files_are_removed_and_complete_ones_stay(tmp_path: Path) -> None:
    folder = tmp_path / ".pulumi/stacks/reside"
    folder.mkdir(parents=True)
    files = {"local.json": "{}", "local.json.attrs": "", "local.json.bak.attrs": "{}", "local.json.18ea.tmp": "{"}
    for name, text in files.items():
        (folder / name).write_text(text)
    crash.remove_partial_files(tmp_path)
    assert sorted(path.name for path in folder.iterdir()) == ["local.json", "local.json.bak.attrs"]


def test_the_state_of_a_deleted_cluster_is_moved_away(tmp_path: Path) -> None:
    folder = tmp_path / ".pulumi/stacks/reside"
    folder.mkdir(parents=True)
    (folder / "local.json").write_text("{}")
    (folder / "other.json").write_text("{}")
    assert not crash.archive_other_state(tmp_path, "local", "uid-1")
    assert not crash.archive_other_state(tmp_path, "local", "uid-1")
    assert not crash.archive_other_state(tmp_path, "local", None)
    assert (folder / "local.json").exists()
    assert crash.archive_other_state(tmp_path, "local", "uid-2")
    assert sorted(path.name for path in folder.iterdir()) == ["local.json.of-uid-1.old", "other.json"]
    assert not crash.archive_other_state(tmp_path, "local", "uid-2")


def test_a_living_engine_is_waited_for_and_named_when_it_does_not_end(tmp_path: Path) -> None:
    path = lock(tmp_path, "local", json.dumps({"pid": 7}))
    write_stat(tmp_path / "proc", 7, "pulumi")
    with pytest.raises(Conflict, match="stack local"):
        crash.wait_for_others(tmp_path, "local", 0, tmp_path / "proc")
    path.unlink()
    crash.wait_for_others(tmp_path, "local", 0, tmp_path / "proc")
