"""Change modules that a unit requires: Go refuses an overlay of its module cache, so modules are copied.

A patch is a folder whose files are added to the module, or replace those of the same name. A file `NAME.edits` changes
the module's file NAME: each of its blocks has lines that occur there once, and the lines that take their place.
"""

import re
import shutil
from pathlib import Path

from tools.builder.golang import BuildError, module_folder
from tools.builder.units import Unit

_EDITS = ".edits"
_BLOCK = re.compile(r"<{7}\n(.*?)={7}\n(.*?)>{7}\n", re.DOTALL)


def flags(unit: Unit, root: Path) -> list[str]:
    """Return the flags of Go commands of a unit, which `prepare` makes valid."""
    return [f"-modfile={_folder(unit, root) / 'go.mod'}"] if unit.patches else []


def prepare(unit: Unit, module: Path, root: Path) -> None:
    """Copy the modules that a unit patches, and write a go.mod that uses the copies.

    The folder has the same path in every run, because Go compiles packages of another path again.

    Raises:
        BuildError: a module can't be downloaded, or does not have what a patch changes.
    """
    if not unit.patches:
        return
    folder = _folder(unit, root)
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir()
    replaced = ""
    for name, patch in unit.patches.items():
        copy = folder / re.sub(r"\W", "-", name)
        shutil.copytree(module_folder(module, name), copy)
        for path in [copy, *copy.rglob("*")]:
            path.chmod(path.stat().st_mode | 0o200)  # Go's module cache is read-only
        shutil.copytree(module / patch, copy, dirs_exist_ok=True)
        for edits in copy.rglob(f"*{_EDITS}"):
            _edit(edits)
        replaced += f"\nreplace {name} => {copy}\n"
    (folder / "go.mod").write_text((module / "go.mod").read_text() + replaced)
    shutil.copyfile(module / "go.sum", folder / "go.sum")


def _edit(edits: Path) -> None:
    file = edits.with_suffix("")
    text = file.read_text() if file.exists() else ""
    for before, after in _BLOCK.findall(edits.read_text()):
        if text.count(before) != 1:
            raise BuildError(f"{edits.name}: the module has these lines {text.count(before)} times:\n{before}")
        text = text.replace(before, after)
    file.write_text(text)


def _folder(unit: Unit, root: Path) -> Path:
    return root / f".patched.{unit.name}"
