"""The processes of pods on this machine, for tests that stop or kill them."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from support.eventually import eventually_sync

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from support.platform import Platform


def main_pid(pod_uid: str, program: bytes = b"-m\0reside.") -> int:
    """Return the process of a pod's replica: the one whose command line contains `program`, in the pod's cgroup."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if pod_uid in (entry / "cgroup").read_text() and program in (entry / "cmdline").read_bytes():
                return int(entry.name)
        except (FileNotFoundError, ProcessLookupError):
            continue  # ended while we looked
    raise AssertionError(f"no process of pod {pod_uid}")


@contextmanager
def slow_to_end(platform: Platform, pod: dict[str, Any], seconds: float) -> Iterator[None]:
    """Let a pod end so many seconds after its deletion has begun: until then, its process is stopped (SIGSTOP)."""
    name, pid = pod["metadata"]["name"], main_pid(pod["metadata"]["uid"], b"python")
    os.kill(pid, signal.SIGSTOP)

    def release() -> None:
        try:
            eventually_sync(f"the deletion of {name}", lambda: _is_terminating(platform, name), within=120)
            released.wait(seconds)
        finally:
            os.kill(pid, signal.SIGCONT)

    released = threading.Event()
    waiting = threading.Thread(target=release, name=f"slow end of {name}")
    waiting.start()
    try:
        yield
    finally:
        released.set()
        waiting.join()


def _is_terminating(platform: Platform, name: str) -> bool:
    return "deletionTimestamp" in platform.get("Pod", name).get("metadata", {"deletionTimestamp": "gone"})
