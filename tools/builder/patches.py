"""Replace files of modules that a unit requires: Go refuses an overlay of its module cache, so modules are copied."""

import re
import shutil
from pathlib import Path

from tools.builder.golang import module_folder
from tools.builder.units import Unit


def flags(unit: Unit, root: Path) -> list[str]:
    """Return the flags of Go commands of a unit, which `prepare` makes valid."""
    return [f"-modfile={_folder(unit, root) / 'go.mod'}"] if unit.patches else []


def prepare(unit: Unit, module: Path, root: Path) -> None:
    """Copy the modules that a unit patches, and write a go.mod that uses the copies.

    The folder has the same path in every run, because Go compiles packages of another path again.

    Raises:
        BuildError: a module can't be downloaded.
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
        replaced += f"\nreplace {name} => {copy}\n"
    (folder / "go.mod").write_text((module / "go.mod").read_text() + replaced)
    shutil.copyfile(module / "go.sum", folder / "go.sum")


def _folder(unit: Unit, root: Path) -> Path:
    return root / f".patched.{unit.name}"
