"""`reside dev` from an edit to the log of the new version; the logs of replicas and components; on a real cluster."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from support.eventually import eventually_sync

from reside.cli.new import Kind, make, parse_names
from reside.model.constants import RESIDE_REGISTRY

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.platform import Platform

pytestmark = pytest.mark.timeout(1200)

NAME = "edited"


class Running:
    """A `reside` command that runs until it is interrupted, and what it has printed."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.lines.append(line.rstrip("\n"))

    def line(self, pattern: str) -> str:
        """Wait for a line that matches a pattern, and return it."""

        def found() -> str | None:
            assert self._process.poll() is None, "\n".join(self.lines)
            return next((line for line in self.lines if re.search(pattern, line)), None)

        return str(eventually_sync(f"a line {pattern!r}", found, lambda line: line is not None, within=180))

    def interrupt(self) -> int:
        """End the command as Ctrl-C does; return its exit code."""
        self._process.send_signal(signal.SIGINT)
        code = self._process.wait(60)
        self._reader.join(60)
        return code


@contextmanager
def running(platform: Platform, *arguments: str) -> Iterator[Running]:
    """Run a command in the background while the block is open; SIGINT interrupts it.

    It would be ignored where the tests run as a shell's background job.
    """
    process = subprocess.Popen(
        ["env", "--default-signal=INT", *platform.command, *arguments],
        env=platform.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    with process:
        try:
            yield Running(process)
        finally:
            process.kill()


@pytest.fixture
def folder(platform: Platform, tmp_path: Path) -> Iterator[Path]:
    """Yield the folder of a new replica, which is deleted from the cluster afterwards."""
    make(tmp_path / NAME, Kind.replica, parse_names(NAME, f"{RESIDE_REGISTRY}/dev"))
    permission = ("admin", "kubernetes-sentinel", "logs:read")
    platform.reside("permission", "grant", *permission)
    yield tmp_path / NAME
    platform.reside("replica", "delete", NAME, "--auto-approve")
    platform.reside("permission", "revoke", *permission)


def say(folder: Path, word: str) -> None:
    """Change the replica so that it prints a word at its start."""
    text = re.sub(r"^print\(.*\n", "", (folder / "main.py").read_text(), flags=re.MULTILINE)
    save(folder, text.replace("replica = Replica", f'print("it says {word}", flush=True)\nreplica = Replica'))


def save(folder: Path, text: str) -> None:
    """Replace main.py in one step: on a busy machine, a file that is emptied first could be loaded as it is then."""
    (folder.parent / "main.py").write_text(text)
    (folder.parent / "main.py").rename(folder / "main.py")


def test_an_edit_is_running_and_its_logs_are_shown(platform: Platform, folder: Path) -> None:
    say(folder, "first")
    with running(platform, "dev", str(folder), "--approve") as dev:
        dev.line(
            rf"dev: {NAME} version 1 is running after [0-9.]+ s \(build .*, validation .*, approval .*, start .*\)"
        )
        dev.line("it says first")
        with running(platform, "replica", "logs", NAME, "--follow") as logs:
            logs.line("it says first")
            before = (folder / "main.py").read_text()
            save(folder, "def broken(:\n")
            dev.line(r"error: .*main.py:1 is not Python")
            save(folder, before.replace("it says first", "it says second"))
            dev.line(rf"dev: {NAME} version 2 is running after ")
            for output in (dev, logs):  # the logs go on over the replacement of the pod
                output.line("it says second")
            assert sum("it says first" in line for line in logs.lines) == 1
            assert logs.interrupt() == 130
        assert dev.interrupt() == 130
    assert any(f"{NAME} version 2 is running. Go on with `reside dev {folder}`" in line for line in dev.lines), (
        dev.lines
    )
    assert "Traceback" not in "\n".join(dev.lines + logs.lines)


def test_the_components_of_a_cluster_have_logs(platform: Platform) -> None:
    found = json.loads(platform.reside("cluster", "logs", "--tail", "3", "--output", "json").stdout)
    lines = {each["pod"]: each["text"].count("\n") for each in found}
    assert {"jazz-0", "etcd-0"} <= lines.keys()
    for name in ("alpha-", "kubernetes-sentinel-", "etcd-"):
        assert 3 in [count for pod, count in lines.items() if pod.startswith(name)], lines
    assert [each["error"] for each in found] == [None] * len(found)
    with running(platform, "cluster", "logs", "etcd", "--follow", "--tail", "1") as logs:
        eventually_sync("a line", lambda: list(logs.lines), lambda lines: len(lines) >= 1)
        assert logs.interrupt() == 130
