"""`reside completion`: print the script with which a shell completes commands and options."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated

import typer
from typer._completion_shared import get_completion_script

from reside.cli.main import COMPLETION_VARIABLE, NAME


class Shell(StrEnum):
    """A shell."""

    bash = "bash"
    zsh = "zsh"
    fish = "fish"


def completion(shell: Annotated[Shell, typer.Argument(help="The shell.")]) -> None:
    """Print a completion script: `source <(reside completion bash)`, or `reside completion fish | source`."""
    script = get_completion_script(prog_name=NAME, complete_var=COMPLETION_VARIABLE, shell=shell.value)
    sys.stdout.write(f"{script}\n")
