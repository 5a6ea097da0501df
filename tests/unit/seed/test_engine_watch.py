"""The seed ends with its engine: which process that is, and when it counts as ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reside.seed import engine_watch

if TYPE_CHECKING:
    from pathlib import Path


def process(folder: Path, pid: int, name: str, parent: int, state: str = "S") -> None:
    (folder / str(pid)).mkdir()
    (folder / str(pid) / "stat").write_text(f"{pid} ({name}) {state} {parent} 0 0\n")


def test_the_engine_is_found_above_a_shell(tmp_path: Path) -> None:
    for pid, name, parent in ((5, "pulumi", 1), (6, "bash", 5), (7, "python (x)", 6)):
        process(tmp_path, pid, name, parent)
    assert engine_watch.find_engine(tmp_path, 7) == 5


def test_without_an_engine_there_is_no_process_to_follow(tmp_path: Path) -> None:
    process(tmp_path, 6, "bash", 1)
    process(tmp_path, 7, "python", 6)
    assert engine_watch.find_engine(tmp_path, 7) is None


@pytest.mark.parametrize(("name", "state", "runs"), [("pulumi", "S", True), ("pulumi", "Z", False), ("vi", "S", False)])
def test_only_a_living_engine_counts(tmp_path: Path, name: str, state: str, runs: bool) -> None:
    process(tmp_path, 7, name, 1, state)
    assert engine_watch.is_engine(tmp_path, 7) is runs
    assert not engine_watch.is_engine(tmp_path, 8)
