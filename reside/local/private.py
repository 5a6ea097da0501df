"""Writes files that hold keys, or name those that do: whole or not at all, and readable by their owner only."""

import os
from pathlib import Path


def write_private(path: Path, content: bytes) -> None:
    """Replace a file at once by one of mode 0600."""
    draft = path.with_name(f".{path.name}")
    draft.unlink(missing_ok=True)  # left by a killed process
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as handle:
        handle.write(content)
    draft.replace(path)
