"""Processes of a local cluster end together with those that they start while they end."""

import os
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from reside.common.processes import ProcessId, identify
from reside.local.errors import StuckProcessError
from reside.local.processes import MARK, marked
from reside.local.supervise import end_all


def _spawn(state: Path, *command: str) -> subprocess.Popen[str]:
    environment = {**os.environ, MARK: str(state)}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True)


def test_a_process_that_another_starts_while_it_ends_is_ended_too(tmp_path: Path) -> None:
    script = 'trap "setsid sleep 60 & exit" TERM; echo ready; while :; do read -r line <&3; done 3<>"$0"'
    os.mkfifo(tmp_path / "never")
    with _spawn(tmp_path, "sh", "-c", script, str(tmp_path / "never")) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "ready\n"
        end_all(partial(marked, tmp_path))
        assert list(marked(tmp_path)) == []


def test_processes_that_something_starts_again_and_again_are_an_error(tmp_path: Path) -> None:
    started = []

    def restarted() -> Iterator[ProcessId]:
        started.append(_spawn(tmp_path, "sleep", "60"))
        process = identify(started[-1].pid)
        assert process is not None
        yield process

    with pytest.raises(StuckProcessError, match="end what starts them again"):
        end_all(restarted, term_seconds=0)
    for process in started:
        process.kill()
        process.communicate()
    assert len(started) < 10
