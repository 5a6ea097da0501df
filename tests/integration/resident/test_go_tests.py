"""The Go tests of the resident engine: gofmt, go vet, go test; with the race detector in `make soak`.

Go caches successful tests, so nothing runs again before `engine/` changes.
"""

import subprocess
from pathlib import Path

import pytest

from tools.builder.golang import collector, environment

# Before Go has remembered anything, it compiles the tests of the engine, and links them
pytestmark = pytest.mark.timeout(1200)
_ENGINE = Path(__file__).parents[3] / "engine"


def _go(*command: str, **settings: str) -> str:
    """Run a Go command in `engine/`, with the packages that the build compiled, and return its output."""
    done = subprocess.run(
        command, cwd=_ENGINE, env={**environment(), **settings}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{' '.join(command)}:\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def test_the_engine_is_formatted() -> None:
    assert _go("gofmt", "-l", ".") == ""


def test_go_vet_finds_no_error_in_the_engine() -> None:
    assert _go("go", "vet", "./...", **collector()) == ""


def test_the_engines_own_tests_pass() -> None:
    # Without its own, smaller vet: with other options than above, that would look at all packages again
    said = _go("go", "test", "-vet=off", "./...")
    tested = {line.split()[1].rpartition("/")[2] for line in said.splitlines() if line.startswith("ok")}
    assert {"wire", "server", "command", "operation"} <= tested


@pytest.mark.soak
def test_the_engines_own_tests_find_no_race() -> None:
    # The detector needs C: all of Pulumi is compiled again for it, which takes ten minutes the first time
    _go("go", "test", "-race", "-timeout", "30m", "./...", CGO_ENABLED="1")
