"""Check whether a process is alive, and which process a pid identifies."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.proc_files import write_stat

from reside.common.processes import ProcessId, identify, is_alive, is_pid_alive, read_stat, resident_memory
from reside.local.processes import leads_session

_NAMELESS = """
import pathlib, sys
pathlib.Path("/proc/self/comm").write_bytes(b"\\xff) Z \\xfe")
print("named", flush=True)
sys.stdin.read()
"""
_WITHOUT_ITS_FIRST_THREAD = """
import ctypes, os, pathlib, sys, threading

def serve():
    stat = pathlib.Path("/proc/self/stat")
    while stat.read_text().split()[2] != "Z":
        pass
    print("zombie", flush=True)
    sys.stdin.read()
    os._exit(0)

threading.Thread(target=serve).start()
ctypes.CDLL(None).pthread_exit(None)
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


def test_a_process_is_alive_until_its_last_thread_has_ended() -> None:
    """Until then its ports are in use, although the kernel shows it as a zombie once its first thread has ended."""
    command = [sys.executable, "-c", _WITHOUT_ITS_FIRST_THREAD]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"zombie\n"
        found = identify(process.pid)
        assert found is not None
        assert is_alive(found)
        process.communicate(b"")
        assert not is_alive(found)


@pytest.mark.parametrize(("name", "alive"), [(None, True), ("pulumi (x)", True), ("pulumi", False)])
def test_a_name_with_parentheses_is_read_completely(tmp_path: Path, name: str | None, alive: bool) -> None:
    write_stat(tmp_path, 7, "pulumi (x)")
    assert is_pid_alive(7, tmp_path, name=name) is alive
    assert not is_pid_alive(8, tmp_path, name=name)


def test_the_memory_of_a_process_s_descendants_is_that_of_all_its_children_and_theirs(tmp_path: Path) -> None:
    page = os.sysconf("SC_PAGE_SIZE")
    for pid, parent, pages in ((7, 1, 1000), (8, 7, 10), (9, 8, 5), (10, 1, 3), (11, 99, 2)):
        fields = ["S", str(parent), *("0" for _ in range(19)), str(pages), "0"]
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "stat").write_text(f"{pid} (a b) {' '.join(fields)}")
    (tmp_path / "12").mkdir()
    assert resident_memory(7, tmp_path) == 15 * page
    assert resident_memory(9, tmp_path) == 0
