"""The image of the seed has only a part of pulumi-kubernetes, with which the bootstrap program can be imported."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pulumi_kubernetes

from images.wheels import leave_out_unused_kinds

ROOT = Path(__file__).parents[3]
CODE = "import pulumi_kubernetes, stacks.bootstrap; print(pulumi_kubernetes.__file__)"


def test_the_bootstrap_is_imported_with_what_is_left(tmp_path: Path) -> None:
    whole = Path(pulumi_kubernetes.__file__).parent
    package = tmp_path / whole.name
    shutil.copytree(whole, package, ignore=shutil.ignore_patterns("__pycache__"))
    leave_out_unused_kinds(package)
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        cwd=ROOT,
        env={"PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.strip()) == (0, str(package / "__init__.py")), done.stderr
    left = sum(path.stat().st_size for path in package.rglob("*.py"))
    assert left < sum(path.stat().st_size for path in whole.rglob("*.py")) / 2
