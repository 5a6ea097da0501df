"""What the kernel says about processes."""

import os
import subprocess
import sys

from reside.local.processes import identify, is_alive, leads_session

_NAMELESS = """
import pathlib, sys
pathlib.Path("/proc/self/comm").write_bytes(b"\\xff) Z \\xfe")
print("named", flush=True)
sys.stdin.read()
"""


def test_a_process_whose_name_is_no_text_is_identified_like_any_other() -> None:
    """Any process of the machine may call itself so, and all of them are looked at."""
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


def test_no_process_is_none() -> None:
    assert identify(2**22 + os.getpid()) is None  # above every limit of the kernel (proc(5), pid_max)
