"""Options declared once: a command shows them with their defaults, and gets them as one value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer
from typer.testing import CliRunner

from reside.cli.shared_options import with_options


@dataclass(frozen=True)
class Colours:
    """Two options."""

    front: Annotated[str, typer.Option(help="Of the letters.")] = "black"
    back_ground: Annotated[list[str] | None, typer.Option("--back", help="Of the paper.")] = None


app = typer.Typer()


@app.command()
@with_options(Colours)
def paint(name: str, *, twice: bool = False, options: Colours) -> None:
    """Paint."""
    typer.echo((name, twice, options))


def test_a_command_gets_its_own_options_and_the_shared_ones() -> None:
    ran = CliRunner().invoke(app, ["door", "--twice", "--back", "red", "--back", "blue"])
    assert ran.output.strip() == str(("door", True, Colours(back_ground=["red", "blue"])))
    ran = CliRunner().invoke(app, ["door", "--front", "white"])
    assert ran.output.strip() == str(("door", False, Colours(front="white")))


def test_shared_options_are_in_the_help() -> None:
    shown = CliRunner().invoke(app, ["--help"]).output
    assert "Of the letters." in shown
    assert "Of the paper." in shown
    assert "options" not in shown.replace("Options", "")
