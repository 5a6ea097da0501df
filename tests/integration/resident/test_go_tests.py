"""The Go tests of the resident engine: gofmt, go vet, go test; with the race detector in `make soak`.

Go remembers what passed: nothing is run again before `engine/` changes.
"""

import os
import subprocess
from pathlib import Path

import pytest

_ENGINE = Path(__file__).parents[3] / "engine"
_AS_BUILT = {"CGO_ENABLED": "0", "GOWORK": "off"}  # tools.builder.golang's, so that its compiled packages are used


def _go(*command: str, **settings: str) -> str:
    """Run a Go command in `engine/`, which must succeed, and return its output."""
    done = subprocess.run(
        command, cwd=_ENGINE, env={**os.environ, **_AS_BUILT, **settings}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{' '.join(command)}:\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def test_the_engine_is_formatted() -> None:
    assert _go("gofmt", "-l", ".") == ""


def test_vet_finds_nothing_in_the_engine() -> None:
    assert _go("go", "vet", "./...") == ""


def test_the_engines_own_tests_pass() -> None:
    said = _go("go", "test", "./...")
    tested = {line.split()[1].rpartition("/")[2] for line in said.splitlines() if line.startswith("ok")}
    assert {"wire", "server", "command", "operation"} <= tested


@pytest.mark.soak
def test_the_engines_own_tests_find_no_race() -> None:
    # The detector is C: all of Pulumi is compiled once more for it, which takes ten minutes the first time
    _go("go", "test", "-race", "-timeout", "30m", "./...", CGO_ENABLED="1")
