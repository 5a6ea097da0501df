"""`pulumi` at the root in a shell prepared by `reside cluster env`, without any cluster: what a run leaves behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.platform import ROOT, Platform

if TYPE_CHECKING:
    from collections.abc import Iterator

TRACKED = ROOT / "stacks/Pulumi.local.yaml"
"""The only file that Pulumi writes to and git knows."""


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    """An operator's environment with folders of its own; the tracked file is put back whatever happens."""
    before = TRACKED.read_bytes()
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    own = {
        "PULUMI_HOME": str(tmp_path / "pulumi"),
        "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring",  # the passphrase is a file's
        "TMPDIR": str(scratch),
    }
    yield {**Platform("none", tmp_path, tmp_path).environment, **own}
    if TRACKED.read_bytes() != before:
        TRACKED.write_bytes(before)


def shell(environment: dict[str, str], script: str, interpreter: str = "bash") -> subprocess.CompletedProcess[str]:
    reside = Path(sys.executable).with_name("reside")
    return subprocess.run(
        [interpreter, "-c", f'eval "$({reside} cluster env)"; {script}'],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("interpreter", ["bash", "sh"])
def test_a_new_stack_leaves_the_tracked_file_and_the_temporary_folder_as_they_were(
    environment: dict[str, str], interpreter: str
) -> None:
    before = TRACKED.read_bytes()
    done = shell(environment, "pulumi stack init local && pulumi stack ls && pulumi config", interpreter)
    assert done.returncode == 0, done.stderr
    assert "local*" in done.stdout
    assert TRACKED.read_bytes() == before
    assert list(Path(environment["TMPDIR"]).iterdir()) == []


def test_the_exit_code_is_that_of_pulumi(environment: dict[str, str]) -> None:
    done = shell(environment, "pulumi stack select nothing --non-interactive")
    assert done.returncode == 6  # what Pulumi says when there is no such stack
    assert "no stack named 'nothing' found" in done.stderr


def test_the_environment_holds_no_passphrase(environment: dict[str, str]) -> None:
    done = shell(environment, 'reside cluster env; cat "$PULUMI_CONFIG_PASSPHRASE_FILE" >&2')
    assert done.stderr.strip()
    assert done.stderr.strip() not in done.stdout
