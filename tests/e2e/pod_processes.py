"""The processes of pods on this machine, for tests that stop or kill them."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import contextmanager, suppress
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


def kill(platform: Platform, *replicas: str) -> None:
    """Kill (SIGKILL) the processes of the ready pods of replicas."""
    for pod in [pod for name in replicas for pod in platform.ready_pods(name)]:
        os.kill(main_pid(pod["metadata"]["uid"]), signal.SIGKILL)


@contextmanager
def killed_again_and_again(pod_uid: str, program: bytes) -> Iterator[None]:
    """Kill the process of a pod that runs `program` whenever there is one, while the block is open."""
    ended = threading.Event()

    def run() -> None:
        while not ended.is_set():
            with suppress(AssertionError, ProcessLookupError):
                os.kill(main_pid(pod_uid, program), signal.SIGKILL)
            ended.wait(0.5)

    killing = threading.Thread(target=run, name=f"kill {pod_uid}")
    killing.start()
    try:
        yield
    finally:
        ended.set()
        killing.join()


@contextmanager
def slow_to_end(platform: Platform, pod: dict[str, Any], seconds: float) -> Iterator[None]:
    """Let a pod end so many seconds after its deletion has begun: until then, its process is stopped (SIGSTOP)."""
    name, pid = pod["metadata"]["name"], main_pid(pod["metadata"]["uid"], b"python")
    os.kill(pid, signal.SIGSTOP)

    def release() -> None:
        try:
            eventually_sync(f"the deletion of {name}", lambda: _is_terminating(platform, name), within=240)
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
