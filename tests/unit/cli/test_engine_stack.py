"""The stack of the bootstrap in this process: what the parts that it puts together must have in common."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version

from tools.builder.units import PULUMI_VERSION


def test_the_command_line_of_the_toolchain_has_the_version_of_the_sdk() -> None:
    """`engine_stack` does not ask the command line for its version."""
    assert f"v{version('pulumi')}" == PULUMI_VERSION


def test_the_process_of_the_dynamic_provider_does_not_import_the_sdk_for_kubernetes() -> None:
    code = "import sys, stacks.bootstrap.dynamic; print('pulumi_kubernetes' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
