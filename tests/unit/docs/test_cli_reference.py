"""docs/cli.md is what the code says, and every command and option is explained."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typer.core import TyperGroup
from typer.main import get_command

from reside.cli.main import PARTS, command
from tools.cli_reference import PAGE, page

if TYPE_CHECKING:
    from collections.abc import Iterator


def test_the_page_is_current() -> None:
    assert PAGE.read_text() == page(), "run `python tools/cli_reference.py`"


def leaves(path: str, found: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(found, TyperGroup):
        for name, inner in found.commands.items():
            yield from leaves(f"{path} {name}", inner)
    else:
        yield path, found


def test_every_command_and_every_option_is_explained() -> None:
    missing = []
    for name in PARTS:
        found = get_command(command([name])).commands[name]  # type: ignore[attr-defined] # it is a group
        for path, leaf in leaves(name, found):
            for what, text in [(path, leaf.help), *((f"{path} {p.name}", p.help) for p in leaf.params)]:
                if not text or text.rstrip()[-1] not in ".:)}]":
                    missing.append((what, text))
    assert missing == []
