"""The seed ends with its engine: which process that is, and when it counts as ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.proc_files import write_stat

from reside.seed import engine_watch

if TYPE_CHECKING:
    from pathlib import Path


def test_the_engine_is_found_above_a_shell(tmp_path: Path) -> None:
    for pid, name, parent in ((5, "pulumi", 1), (6, "bash", 5), (7, "python (x)", 6)):
        write_stat(tmp_path, pid, name, parent=parent)
    assert engine_watch.find_engine(tmp_path, 7) == 5


def test_without_an_engine_there_is_no_process_to_follow(tmp_path: Path) -> None:
    write_stat(tmp_path, 6, "bash")
    write_stat(tmp_path, 7, "python", parent=6)
    assert engine_watch.find_engine(tmp_path, 7) is None


@pytest.mark.parametrize(("name", "state", "runs"), [("pulumi", "S", True), ("pulumi", "Z", False), ("vi", "S", False)])
def test_only_a_living_engine_counts(tmp_path: Path, name: str, state: str, runs: bool) -> None:
    write_stat(tmp_path, 7, name, state)
    assert engine_watch.is_engine(tmp_path, 7) is runs
    assert not engine_watch.is_engine(tmp_path, 8)
