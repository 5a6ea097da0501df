"""Pages of the documentation that are executed as a reader does, each command as it is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from support.eventually import eventually_sync
from support.platform import ROOT
from support.tutorial import Shell, section, steps

from reside.build.cache import cache_folder

if TYPE_CHECKING:
    from pathlib import Path

    from support.platform import Platform

README = (ROOT / "README.md").read_text()
_REPEATABLE = ("reside replica logs ", "reside replica list")
"""A last command of this kind is repeated until its output is as expected: a replica changes at its own time."""


def reader(platform: Platform, home: Path, folder: Path = ROOT) -> Shell:
    """Return the shell of somebody whose home is a folder of the test, in a folder: that of the checkout."""
    environment = platform.environment | {"HOME": str(home), "RESIDE_CACHE": str(cache_folder())}
    environment["PATH"] = f"{ROOT / '.venv/bin'}:{ROOT / '.tools/bin'}:{environment['PATH']}"
    return Shell(folder, environment, home)


def scripts(heading: str, replaced: dict[str, str] | None = None) -> list[str]:
    """Return the scripts of a section of the README.

    Args:
        heading: the heading of the section.
        replaced: what stands for something that only the reader knows → what it is in the test.
    """
    found = [step.script for step in steps(section(README, heading))]
    for name, value in (replaced or {}).items():
        assert any(name in script for script in found), f"{heading} does not name {name}"
        found = [script.replace(name, value) for script in found]
    return found


def follow(shell: Shell, page: str) -> None:
    """Carry out a page: write its files, run its scripts, and compare what they print."""
    for step in steps(page):
        step.write(shell.folder)
        output = shell.run(step.script)
        last = step.script.strip().splitlines()[-1]
        if last.startswith(_REPEATABLE):
            before = output
            output = eventually_sync(
                f"the output of {last}",
                lambda last=last, before=before: before + shell.run(last),
                step.is_shown,
                within=120,
            )
        assert step.is_shown(output), f"{step.script}\ngives\n{output}\nand not\n" + "\n".join(step.expected)
