"""Outages of parts of the local cluster, which end with their block."""

from __future__ import annotations

import json
import os
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.platform import Platform


@contextmanager
def without_registry(platform: Platform) -> Iterator[None]:
    """Kill the image registry while the block is open; then repair the cluster as its operator would."""
    listed = platform.reside("local", "status", "--name", platform.name, "--output", "json").stdout
    registries = [part["pid"] for part in json.loads(listed) if part["name"].startswith("registry-")]
    assert registries, f"no registry among {listed}"
    try:
        for pid in registries:
            os.kill(pid, signal.SIGKILL)
        yield
    finally:
        platform.reside("local", "up", "--name", platform.name)
