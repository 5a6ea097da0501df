"""`python -m reside.jazz serve` as a process: its address, its end, and its errors."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from websockets.sync.client import connect

_ROOT = Path(__file__).parents[4]
_WITHIN_S = 60.0


def _serve(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "reside.jazz", "serve", *arguments],
        cwd=_ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _ended(*arguments: str) -> tuple[int, str]:
    with _serve(*arguments) as process:
        _, errors = process.communicate(timeout=_WITHIN_S)
        return process.returncode, errors


def _address(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    found = re.fullmatch(r"listening on (ws://127\.0\.0\.1:\d+)\n", process.stdout.readline())
    assert found is not None
    return found.group(1)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_listens_until_a_signal_and_ends_gracefully(number: signal.Signals, tmp_path: Path) -> None:
    with _serve("--port", "0", "--db", str(tmp_path / "jazz.sqlite")) as process:
        url = _address(process)
        with connect(url) as client:
            process.send_signal(number)
            out, errors = process.communicate(timeout=_WITHIN_S)
            assert (process.returncode, out, errors) == (0, "", "")
            assert client.close_code is None or client.close_code == 1001
    assert [file.name for file in tmp_path.iterdir()] == ["jazz.sqlite"]


def test_a_port_in_use_is_named() -> None:
    with _serve("--port", "0") as process:
        port = _address(process).rpartition(":")[2]
        code, errors = _ended("--port", port)
        process.terminate()
    assert code == 4
    assert (
        errors == f"jazz: can't listen on 127.0.0.1:{port}: Address already in use; choose another --host or --port\n"
    )


def test_an_address_of_another_machine_is_named() -> None:
    code, errors = _ended("--host", "192.0.2.1")
    assert code == 4
    assert errors.startswith("jazz: can't listen on 192.0.2.1:4200: ")


def test_an_unusable_database_file_is_named(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("no database" * 1000)
    for file, why in ((text, "file is not a database"), (tmp_path / "none" / "jazz.sqlite", "unable to open")):
        code, errors = _ended("--port", "0", "--db", str(file))
        assert code == 1
        assert errors.startswith(f"jazz: the local store {file}: ")
        assert why in errors


def test_a_database_file_in_use_is_named(tmp_path: Path) -> None:
    file = tmp_path / "jazz.sqlite"
    with _serve("--port", "0", "--db", str(file)) as process:
        _address(process)
        code, errors = _ended("--port", "0", "--db", str(file))
        process.terminate()
    assert (code, errors) == (
        1,
        f"jazz: the local store {file}: another process has it open: stop it, or use another file\n",
    )


@pytest.mark.parametrize("port", ["none", "70000", "-1"])
def test_a_number_that_is_no_port_is_refused(port: str) -> None:
    code, errors = _ended(f"--port={port}")
    assert code == 2
    assert f"{port} is not a port number" in errors
