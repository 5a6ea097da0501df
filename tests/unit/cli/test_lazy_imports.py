"""Only the part of the command that the arguments name is imported; all parts are listed."""

import subprocess
import sys

import pytest
from typer.main import get_command

from reside.cli.main import PARTS, SINGLE, command, named_part


@pytest.mark.parametrize("arguments", [[], ["--help"], ["nonsense"], *([part] for part in PARTS)])
def test_all_parts_are_listed(arguments: list[str]) -> None:
    assert set(get_command(command(arguments)).commands) == set(PARTS)  # type: ignore[attr-defined] # it is a group


@pytest.mark.parametrize("part", sorted(set(PARTS) - SINGLE))
def test_the_named_part_has_its_own_commands(part: str) -> None:
    assert get_command(command([part])).commands[part].commands  # type: ignore[attr-defined] # as above


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ([], None),
        (["--help"], None),
        (["nonsense"], None),
        (["replica", "list"], "replica"),
        (["--", "local"], "local"),
    ],
)
def test_the_part_is_the_first_argument_that_is_no_option(arguments: list[str], part: str | None) -> None:
    assert named_part(arguments) == part


@pytest.mark.parametrize("module", ["reside.cli.config", "reside.jazz", "structlog", "stamina", "pydantic"])
def test_the_help_imports_no_part(module: str) -> None:
    code = f"import sys; from reside.cli.main import run; run(['--help']); sys.exit({module!r} in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_the_embedded_kubernetes_needs_no_jazz() -> None:
    code = "import sys; from reside.cli.main import command; command(['local']); print('reside.jazz' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "False\n"


LISTS = ("account list", "cluster info", "cluster list", "replica list")
SLOW = (
    "cryptography",
    "httpx2",
    "keyring",
    "lightkube",
    "pulumi",
    "pydantic_settings",
    "reside.build",
    "reside.cli.describing",
    "reside.seed",
    "reside.sentinel",
    "stamina",
    "structlog",
)


@pytest.mark.parametrize("path", LISTS)
def test_a_list_imports_its_own_code_alone(path: str) -> None:
    code = f"""
import sys
from reside.cli import declarations
declarations.imported(declarations.load(), {path!r})
print([name for name in {SLOW!r} if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "[]\n"
