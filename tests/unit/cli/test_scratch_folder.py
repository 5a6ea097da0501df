"""The private folder for temporary files of a bootstrap is removed by its run or by the next one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from support.proc_files import write_stat

from reside.cli import scratch

if TYPE_CHECKING:
    from pathlib import Path


def test_the_folder_is_private_and_removed_with_the_run(tmp_path: Path) -> None:
    with scratch.folder(tmp_path, "local") as own:
        assert own.stat().st_mode & 0o777 == 0o700
        (own / "kubeconfig123").write_text("credentials")
    assert not own.exists()


def test_folders_of_killed_runs_are_removed_and_those_in_use_stay(tmp_path: Path) -> None:
    processes = tmp_path / "proc"
    write_stat(processes, 7, "reside")
    write_stat(processes, 8, "reside", "Z")
    for name in ("local.6", "local.7", "local.8", "other.6"):
        (tmp_path / "tmp" / name).mkdir(parents=True)
    with scratch.folder(tmp_path, "local", processes):
        assert {path.name for path in (tmp_path / "tmp").iterdir()} == {f"local.{os.getpid()}", "local.7", "other.6"}
