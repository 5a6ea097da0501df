"""A part of the command that the arguments do not name is not imported."""

import subprocess
import sys

import pytest
from typer.main import get_command

from reside.cli.main import command

PARTS = {"account", "build", "cluster", "images", "local", "permission", "replica", "request", "state", "user"}


@pytest.mark.parametrize("arguments", [[], ["--help"], ["nonsense"]])
def test_all_parts_are_imported_if_none_is_named(arguments: list[str]) -> None:
    assert set(get_command(command(arguments)).commands) == PARTS  # type: ignore[attr-defined] # it is a group


@pytest.mark.parametrize("part", sorted(PARTS))
def test_a_named_part_is_a_subcommand_although_it_is_alone(part: str) -> None:
    assert set(get_command(command([part])).commands) == {part}  # type: ignore[attr-defined] # as above


def test_the_embedded_kubernetes_needs_no_jazz() -> None:
    code = "import sys; from reside.cli.main import command; command(['local']); print('reside.jazz' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "False\n"
