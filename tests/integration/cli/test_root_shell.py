"""`pulumi` at the root in a shell prepared by `reside cluster env`, without a cluster: its output and its files."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from support.platform import ROOT, Platform

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Checkout:
    """A copy of what `pulumi` at the root uses, with an operator's environment of its own."""

    root: Path
    environment: dict[str, str]
    scratch: Path

    @property
    def tracked(self) -> Path:
        """The only tracked file that Pulumi writes."""
        return self.root / "stacks/Pulumi.local.yaml"

    def shell(self, script: str, interpreter: str = "bash") -> subprocess.CompletedProcess[str]:
        """Run a script at the root, in a shell prepared as the README says."""
        command = [interpreter, "-c", f'eval "$(.venv/bin/reside cluster env)"; {script}']
        return subprocess.run(command, cwd=self.root, env=self.environment, capture_output=True, text=True, check=False)


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    root, scratch = tmp_path / "checkout", tmp_path / "scratch"
    scratch.mkdir()
    for name in ("reside", "stacks"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("Pulumi.yaml", "__main__.py"):
        shutil.copy(ROOT / name, root)
    for name in (".venv", ".tools"):
        (root / name).symlink_to((ROOT / name).resolve())
    own = {
        "PULUMI_HOME": str(tmp_path / "pulumi"),
        "PYTHONPATH": str(root),
        "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring",  # so the passphrase is a file's
        "TMPDIR": str(scratch),
    }
    return Checkout(root, {**Platform("none", tmp_path, tmp_path).environment, **own}, scratch)


@pytest.mark.parametrize("interpreter", ["bash", "sh"])
def test_a_new_stack_changes_neither_the_tracked_file_nor_the_temporary_folder(
    checkout: Checkout, interpreter: str
) -> None:
    before = checkout.tracked.read_text()
    done = checkout.shell("pulumi stack init local && pulumi stack ls && pulumi config", interpreter)
    assert done.returncode == 0, done.stderr
    assert "local*" in done.stdout
    assert checkout.tracked.read_text() == before
    assert list(checkout.scratch.iterdir()) == []


def test_a_mistake_in_the_settings_is_reported_without_a_traceback(
    checkout: Checkout,
) -> None:
    done = checkout.shell("pulumi stack init local --non-interactive && pulumi preview --non-interactive")
    assert done.returncode == 1
    assert ".state/images.json does not exist: build the images with `make up`" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
    assert "warning" not in done.stdout + done.stderr


def test_the_environment_holds_no_passphrase(checkout: Checkout) -> None:
    done = checkout.shell('.venv/bin/reside cluster env; cat "$PULUMI_CONFIG_PASSPHRASE_FILE" >&2')
    assert done.stderr.strip()
    assert done.stderr.strip() not in done.stdout
