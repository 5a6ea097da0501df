"""The stack of the bootstrap in this process: what the parts that it puts together must have in common."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from reside.cli import engine_stack
from reside.cli.project import ROOT
from tools.builder.units import PULUMI_VERSION

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_the_command_line_of_the_toolchain_has_the_version_of_the_sdk() -> None:
    """`engine_stack` does not ask the command line for its version."""
    assert f"v{version('pulumi')}" == PULUMI_VERSION


def test_no_command_runs_before_the_stack_is_opened(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """By default, a workspace runs `pulumi version`, which takes a quarter of a second."""
    commands: list[object] = []
    monkeypatch.setattr(subprocess, "Popen", lambda command, **_: commands.append(command))
    monkeypatch.setattr(engine_stack, "BootstrapStack", lambda _name, workspace, **_: workspace)
    shutil.copy(ROOT / "Pulumi.yaml", tmp_path)
    settings: Any = None  # read only by the program, which does not run
    opened: Any = engine_stack.open_stack("demo", tmp_path, {}, settings, key=None, exists=False)
    assert f"v{opened.pulumi_command.version}" == PULUMI_VERSION
    assert commands == []


def test_the_process_of_the_dynamic_provider_does_not_import_the_sdk_for_kubernetes() -> None:
    code = "import sys, stacks.bootstrap.dynamic; print('pulumi_kubernetes' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
