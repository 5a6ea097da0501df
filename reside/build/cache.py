"""A cache of folders that are expensive to build, each named by the hash of its inputs.

Invariant: a folder appears under its name complete or not at all. A build that is killed leaves only a temporary
folder, which a later build removes after a day.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

KEEP = 14 * 24 * 3600.0  # seconds after the last use
INCOMPLETE = ".making-"
KEEP_INCOMPLETE = 24 * 3600.0  # seconds; no build takes longer


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the folder for reproducible files: `RESIDE_CACHE`, else `reside` in the user's cache folder."""
    if explicit := environ.get("RESIDE_CACHE"):
        return Path(explicit).absolute()
    home = environ.get("XDG_CACHE_HOME") or Path(environ.get("HOME") or Path.home()) / ".cache"
    return Path(home).absolute() / "reside"


def folder() -> Path:
    """Return the cache folder; create it if it does not exist."""
    path = cache_folder() / "images"
    path.mkdir(parents=True, exist_ok=True)
    return path


def cached(kind: str, key: str, make: Callable[[Path], None]) -> Path:
    """Return the folder `<kind>-<key>`. If it does not exist, call `make` to fill an empty folder for it."""
    path = _path(kind, key)
    if not path.exists():
        _make(path, make)
    os.utime(path)
    _remove_old()
    return path


def find(kind: str, key: str) -> Path | None:
    """Return the folder `<kind>-<key>`; None if it does not exist."""
    path = _path(kind, key)
    try:
        os.utime(path)
    except FileNotFoundError:
        return None
    return path


def replace(kind: str, key: str, make: Callable[[Path], None]) -> None:
    """Call `make` to fill an empty folder, which becomes `<kind>-<key>`. A folder of this name is removed."""
    path = _path(kind, key)
    shutil.rmtree(path, ignore_errors=True)
    _make(path, make)
    _remove_old()


def _path(kind: str, key: str) -> Path:
    return folder() / f"{kind}-{key[:32]}"


def _make(path: Path, make: Callable[[Path], None]) -> None:
    incomplete = Path(tempfile.mkdtemp(prefix=INCOMPLETE, dir=folder()))
    try:
        make(incomplete)
        incomplete.chmod(0o755)
        if not path.exists():  # another build may have finished first
            incomplete.rename(path)
    finally:
        shutil.rmtree(incomplete, ignore_errors=True)


def remove_incomplete(inside: Path) -> None:
    """Remove what killed builds have left in a folder of the cache in which builds make temporary folders."""
    _remove_old(inside.glob(f"{INCOMPLETE}*"))


def _remove_old(paths: Iterable[Path] | None = None) -> None:
    now = time.time()
    for path in folder().iterdir() if paths is None else paths:
        keep = KEEP_INCOMPLETE if path.name.startswith(INCOMPLETE) else KEEP
        try:
            age = now - path.stat().st_mtime
        except FileNotFoundError:
            continue  # another thread or build has renamed or removed it
        if age > keep:
            shutil.rmtree(path, ignore_errors=True)
