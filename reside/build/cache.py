"""The folder in which builds keep what other builds use again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the folder for reproducible files: `RESIDE_CACHE`, else `reside` in the user's cache folder."""
    if explicit := environ.get("RESIDE_CACHE"):
        return Path(explicit).absolute()
    home = environ.get("XDG_CACHE_HOME") or Path(environ.get("HOME") or Path.home()) / ".cache"
    return Path(home).absolute() / "reside"
