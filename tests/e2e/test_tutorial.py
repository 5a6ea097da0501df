"""The commands of docs/tutorial.md, as written and in order, on a real cluster."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.eventually import eventually_sync
from support.platform import ROOT
from support.tutorial import steps

if TYPE_CHECKING:
    from support.platform import Platform

pytestmark = pytest.mark.timeout(1200)

REPEATABLE = "reside replica logs "
"""A last command of this kind is repeated until its output is as expected, because a replica writes at its own time."""


def test_the_tutorial_is_true(platform: Platform, tmp_path: Path) -> None:
    environment = platform.environment
    environment["PATH"] = f"{Path(sys.executable).parent}:{ROOT / '.tools/bin'}:{environment['PATH']}"

    def run(script: str) -> str:
        command = ["bash", "-euo", "pipefail", "-c", script]
        given = {"cwd": tmp_path, "env": environment, "input": "y\n"}
        done = subprocess.run(command, **given, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    for step in steps((ROOT / "docs/tutorial.md").read_text()):
        step.write(tmp_path)
        output = run(step.script)
        last = step.script.strip().splitlines()[-1]
        if last.startswith(REPEATABLE):
            before = output
            output = eventually_sync(
                f"the output of {last}", lambda last=last, before=before: before + run(last), step.is_shown, within=90
            )
        assert step.is_shown(output), f"{step.script}\ngives\n{output}\nand not\n" + "\n".join(step.expected)
    assert not {"quoter", "reader"} & set(platform.replicas())
