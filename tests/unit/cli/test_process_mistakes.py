"""Signals, pipes, terminals and encodings: a process of `reside` ends with one message and a documented exit code."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import signal
import socket
import struct
import subprocess
import sys
import termios
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.command_mistakes import check_mistake, documented_codes
from support.eventually import eventually_sync

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAM = [sys.executable, "-c", "from reside.cli.main import main; main()"]
WITHIN_S = 120.0


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Return an environment with a configuration of its own, and without a keyring."""
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "HOME": str(tmp_path),
        "RESIDE_CONFIG": str(tmp_path),
        "RESIDE_STATE": str(tmp_path / "state"),
        "RESIDE_LOCAL_STATE": str(tmp_path / "local"),
        "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring",
    }


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """Yield a server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(WITHIN_S)
        yield server


def start(environment: dict[str, str], *arguments: str | bytes, **options: Any) -> subprocess.Popen[bytes]:
    """Start `reside`; its standard error is a pipe."""
    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    return subprocess.Popen([*PROGRAM, *arguments], env=environment, **options)


def ended(process: subprocess.Popen[bytes]) -> tuple[int, str]:
    """Return the exit code of a process and what it wrote to standard error."""
    _, errors = process.communicate(timeout=WITHIN_S)
    return process.returncode, errors.decode()


def interrupted(process: subprocess.Popen[bytes]) -> tuple[int, str]:
    """Press Ctrl-C, and return how the process ends."""
    process.send_signal(signal.SIGINT)
    return ended(process)


@pytest.mark.parametrize("arguments", [("explain",), ("explain", "-o", "json"), ("completion", "bash"), ("--help",)])
def test_a_closed_pipe_ends_the_command_silently(environment: dict[str, str], arguments: tuple[str, ...]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    process = start(environment, *arguments, stdout=writer)
    os.close(writer)
    assert ended(process) == (141, "")
    assert 141 in documented_codes()


@pytest.mark.parametrize("arguments", [("explain",), ("completion", "bash"), ("--help",)])
def test_a_full_disk_is_named(environment: dict[str, str], arguments: tuple[str, ...]) -> None:
    with Path("/dev/full").open("wb") as full:
        code, errors = ended(start(environment, *arguments, stdout=full))
    check_mistake(code, errors, 1, "standard output: No space left on device: free disk space")


def test_a_command_without_standard_output_works(environment: dict[str, str]) -> None:
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", *PROGRAM, "completion", "bash"],
        env=environment,
        capture_output=True,
        check=False,
        timeout=WITHIN_S,
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_name_that_the_encoding_does_not_have_is_escaped(environment: dict[str, str]) -> None:
    environment |= {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii:strict"}
    code, errors = ended(start(environment, "cluster", "use", "g\u00fc".encode()))
    check_mistake(code, errors, 1, r"context '.*' is not in .*config.yaml \(known: none\)")
    code, errors = ended(start(environment, "cluster", "use", b"\xff"))
    check_mistake(code, errors, 1, r"context '.*udcff' is not in .*config.yaml \(known: none\)")


def test_of_two_commands_that_create_the_same_account_one_is_refused(environment: dict[str, str]) -> None:
    both = [start(environment, "account", "create", "ada") for _ in range(2)]
    results = sorted(ended(process) for process in both)
    assert results[0] == (0, "")
    check_mistake(*results[1], 1, "account 'ada' exists already: choose another name")


def test_ctrl_c_while_another_command_holds_the_configuration(environment: dict[str, str], tmp_path: Path) -> None:
    with (tmp_path / "config.lock").open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with start(environment, "account", "create", "ada") as process:
            opened = Path(f"/proc/{process.pid}/fd")
            eventually_sync(
                "the command to wait for the lock",
                lambda: [each.resolve() for each in opened.iterdir()],
                lambda paths: tmp_path / "config.lock" in paths,
                within=WITHIN_S,
            )
            check_mistake(*interrupted(process), 130, "interrupted")


def test_ctrl_c_while_jazz_does_not_answer(environment: dict[str, str], tmp_path: Path, silent: socket.socket) -> None:
    port = silent.getsockname()[1]
    assert ended(start(environment, "account", "create", "admin")) == (0, "")
    added = ("cluster", "add", "far", f"127.0.0.1:{port}", "--alpha", "co_zAbcdefghijkmnopqrstu")
    assert ended(start(environment, *added)) == (0, "")
    with start(environment, "replica", "list") as process, closing(silent.accept()[0]):
        check_mistake(*interrupted(process), 130, "interrupted")


def test_ctrl_c_while_kubernetes_does_not_answer(
    environment: dict[str, str], tmp_path: Path, silent: socket.socket
) -> None:
    document = {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
        "clusters": [{"name": "here", "cluster": {"server": f"http://127.0.0.1:{silent.getsockname()[1]}"}}],
        "users": [{"name": "me", "user": {"token": "t"}}],
    }
    (tmp_path / "kube").write_text(json.dumps(document))
    command = ("cluster", "delete", "--yes", "--kubeconfig", str(tmp_path / "kube"))
    with start(environment, *command) as process, closing(silent.accept()[0]):
        check_mistake(*interrupted(process), 130, "interrupted")


class Terminal:
    """A terminal of 40 columns, on which a process of `reside` runs."""

    def __init__(self, environment: dict[str, str], *arguments: str) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
        environment = {**environment, "TERM": "dumb"}
        environment.pop("COLUMNS", None)
        self._process = start(
            environment, *arguments, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
        )
        os.close(theirs)
        self.text = ""

    def wait_for(self, text: str) -> None:
        """Read until the process has written a text."""
        while text not in self.text and (read := self._read()):
            self.text += read
        assert text in self.text, self.text

    def press_ctrl_c(self) -> None:
        """Send SIGINT, as a terminal does for its foreground process."""
        self._process.send_signal(signal.SIGINT)

    def end(self) -> tuple[int, str]:
        """Return the exit code and everything that the process wrote."""
        while read := self._read():
            self.text += read
        os.close(self._ours)
        return self._process.wait(timeout=WITHIN_S), self.text

    def _read(self) -> str:
        try:
            return os.read(self._ours, 4096).decode().replace("\r", "")
        except OSError:  # the process has closed its side
            return ""


def backup(tmp_path: Path) -> tuple[str, ...]:
    return ("cluster", "backup", str(tmp_path / "b"), "--kubeconfig", str(tmp_path / "kube"))


def test_ctrl_c_at_the_question_for_a_passphrase(environment: dict[str, str], tmp_path: Path) -> None:
    terminal = Terminal(environment, *backup(tmp_path))
    terminal.wait_for("passphrase of the backup")
    terminal.press_ctrl_c()
    code, text = terminal.end()
    check_mistake(code, text, 130, "interrupted")


def test_an_error_on_a_terminal_of_40_columns_is_one_line(environment: dict[str, str]) -> None:
    code, text = Terminal(environment, "replica", "lod").end()
    check_mistake(code, text, 2, "no such command 'lod'. Did you mean 'load'")


def test_the_passphrase_of_a_backup_is_not_inherited_by_child_processes(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """kubectl, docker and the bootstrap's engine have no use for it."""
    code = """
import os, subprocess, sys
from reside.cli import backups, main
def child():
    return subprocess.run(["env"], capture_output=True, text=True, check=True).stdout
found = backups._passphrase(None, is_new=True).get_secret_value()
assert found == "a long secret", found
assert "a long secret" not in child()
os.environ["RESIDE_BACKUP_PASSPHRASE"] = "a long secret"
main.run(["account", "list"])
assert "a long secret" not in child()
"""
    environment["RESIDE_BACKUP_PASSPHRASE"] = "a long secret"
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, timeout=WITHIN_S)
