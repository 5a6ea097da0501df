"""A private folder for the temporary files of one bootstrap run, deleted at its end.

The Kubernetes provider copies its kubeconfig to a temporary file and never deletes it; the Sentinel inside the seed
keeps its temporary state there. The next run of the same stack removes the files of a killed run.
"""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from reside.common.processes import is_pid_alive

if TYPE_CHECKING:
    from collections.abc import Iterator

_NAME = "tmp"


@contextmanager
def folder(state: Path, stack: str, processes: Path = Path("/proc")) -> Iterator[Path]:
    """Create a folder that only this user may read, named after the stack and this process; delete it at the end.

    Args:
        state: folder of the bootstrap's state.
        stack: name of the stack; no other process works on it.
        processes: folder of running processes; another one in tests.
    """
    parent = state / _NAME
    parent.mkdir(mode=0o700, exist_ok=True)
    for old in parent.glob(f"{stack}.[0-9]*"):
        if not is_pid_alive(old.suffix.removeprefix("."), processes):
            shutil.rmtree(old)
    own = parent / f"{stack}.{os.getpid()}"
    own.mkdir(mode=0o700)
    try:
        yield own
    finally:
        shutil.rmtree(own, ignore_errors=True)  # a plugin may still be shutting down; the next run removes the rest
