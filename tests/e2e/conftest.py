"""One ReSide for all end-to-end tests of a run, brought up by what `make up` runs."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from support.clusters import fresh_state
from support.platform import ROOT, Platform

from reside.local import LocalCluster

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "e2e"


@pytest.fixture(scope="session")
def platform() -> Iterator[Platform]:
    """A whole ReSide with the greeter loaded."""
    state = fresh_state(NAME)
    folder = state.parent
    stage = Platform(NAME, local_state=folder, folder=folder)
    try:
        command = [sys.executable, "-m", "reside.cli.up", "--name", NAME]
        done = subprocess.run(
            command, cwd=ROOT, env=stage.environment, capture_output=True, text=True, timeout=900, check=False
        )
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        yield replace(stage, up_output=done.stdout + done.stderr)
    finally:
        LocalCluster(NAME, state).down(delete_state=True)
        shutil.rmtree(folder)
