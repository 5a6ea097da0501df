"""Things that take long to make, kept in the cache folder under the hash of what they are made from.

Invariant: a thing appears under its name complete or not at all, so a build that was killed leaves only a temporary
folder, which the next one removes after a day.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from reside.build.daemon import cache_folder

if TYPE_CHECKING:
    from collections.abc import Callable

KEEP = 14 * 24 * 3600.0  # seconds that a thing stays without being used
HALF_MADE = ".making-"
HALF_MADE_KEEP = 24 * 3600.0  # seconds; no build takes longer


def folder() -> Path:
    """Where things are kept; it exists."""
    path = cache_folder() / "images"
    path.mkdir(parents=True, exist_ok=True)
    return path


def cached(kind: str, key: str, make: Callable[[Path], None]) -> Path:
    """The folder ``<kind>-<key>``, made by ``make`` (which fills the folder that it is given) if it is not there."""
    path = folder() / f"{kind}-{key[:32]}"
    if not path.exists():
        half = Path(tempfile.mkdtemp(prefix=HALF_MADE, dir=folder()))
        try:
            make(half)
            half.chmod(0o755)
            if not path.exists():  # another build may have been quicker
                half.rename(path)
        finally:
            shutil.rmtree(half, ignore_errors=True)
    os.utime(path)
    _remove_old()
    return path


def _remove_old() -> None:
    now = time.time()
    for path in folder().iterdir():
        keep = HALF_MADE_KEEP if path.name.startswith(HALF_MADE) else KEEP
        try:
            age = now - path.stat().st_mtime
        except FileNotFoundError:
            continue  # another thread or build has just given it its name, or removed it
        if age > keep:
            shutil.rmtree(path, ignore_errors=True)
