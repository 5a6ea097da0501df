"""Check whether a process is alive, and which process a pid identifies."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from reside.common.processes import ProcessId, identify, is_alive, is_pid_alive, read_stat
from reside.local.processes import leads_session

_NAMELESS = """
import pathlib, sys
pathlib.Path("/proc/self/comm").write_bytes(b"\\xff) Z \\xfe")
print("named", flush=True)
sys.stdin.read()
"""


def test_a_process_whose_name_is_not_utf8_is_identified() -> None:
    """Any process on the machine may have such a name, and all processes are examined."""
    with subprocess.Popen([sys.executable, "-c", _NAMELESS], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"named\n"
        found = identify(process.pid)
        assert found is not None
        assert is_alive(found)
        assert not leads_session(process.pid)
        assert process.stdin is not None
        process.stdin.close()
        process.wait()
        assert not is_alive(found)


def test_a_pid_without_a_process_has_no_identity() -> None:
    assert identify(2**22 + os.getpid()) is None  # above the kernel's limit (proc(5), pid_max)


def test_a_reused_pid_is_another_process() -> None:
    me = identify(os.getpid())
    assert me is not None
    assert is_alive(me)
    assert not is_alive(ProcessId(me.pid, me.start - 1, me.boot))
    assert not is_alive(ProcessId(me.pid, me.start, "another boot"))


def test_a_zombie_is_not_alive() -> None:
    with subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # its parent has not waited for it yet
        assert read_stat(process.pid) is not None
        assert identify(process.pid) is None
        assert not is_pid_alive(process.pid)


@pytest.mark.parametrize(("name", "alive"), [(None, True), ("pulumi (x)", True), ("pulumi", False)])
def test_a_name_with_parentheses_is_read_completely(tmp_path: Path, name: str | None, alive: bool) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "stat").write_text("7 (pulumi (x)) S 1 2 3\n")
    assert is_pid_alive(7, tmp_path, name=name) is alive
    assert not is_pid_alive(8, tmp_path, name=name)
