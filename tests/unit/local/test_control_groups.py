"""How the processes of a control group are found while containers end."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from reside.local import cgroups


def test_a_group_that_is_removed_while_it_is_read_has_no_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hierarchies() -> Iterator[tuple[Path, str]]:
        yield tmp_path, "cgroup2"

    read = Path.read_text

    def read_text(path: Path) -> str:
        if path.parent.name == "ending":
            raise OSError(errno.ENODEV, "No such device")
        return read(path)

    for name in ("pods", "pods/ending", "pods/running"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "cgroup.procs").touch()
    (tmp_path / "pods/running/cgroup.procs").write_text(f"{os.getpid()}\n")
    monkeypatch.setattr(cgroups, "_hierarchies", hierarchies)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_text", lambda path, *_, **__: read_text(path))
        found = cgroups.processes("pods")
    assert [process.pid for process in found] == [os.getpid()]
