"""Find binaries of the required versions on PATH; they are used, and not built."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tools.builder.units import Unit, VersionCheck

_SECONDS = 20.0


def usable(unit: Unit, cache: Path, search: str | None = None) -> dict[str, Path]:
    """Return those of the unit's binaries that are on PATH in the right version.

    Args:
        unit: the unit.
        cache: the cache's folder, which is not searched: its binaries are our own.
        search: the folders to search; None: PATH.
    """
    found: dict[str, Path] = {}
    folders = [Path(part) for part in (search if search is not None else os.environ.get("PATH", "")).split(os.pathsep)]
    for name, check in unit.checks.items():
        for path in _candidates(name, folders, cache):
            if _is_right(path, check):
                if not unit.together:
                    found[name] = path
                    break
                siblings = {other: path.parent / other for other in unit.binaries}
                if all(os.access(sibling, os.X_OK) for sibling in siblings.values()):
                    return siblings
    return found


def _candidates(name: str, folders: list[Path], cache: Path) -> Iterator[Path]:
    for folder in folders:
        path = folder / name
        if os.access(path, os.X_OK) and path.is_file() and not path.resolve().is_relative_to(cache.resolve()):
            yield path.absolute()


def _is_right(path: Path, check: VersionCheck) -> bool:
    binary = path.parent / check.by if check.by else path
    try:
        done = subprocess.run(
            [binary, *check.arguments],
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
            env={**os.environ, "PULUMI_SKIP_UPDATE_CHECK": "true"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return False  # not a program for this machine: build our own
    return done.returncode == 0 and check.accepts(done.stdout + done.stderr)
