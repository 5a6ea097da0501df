"""Real clusters for tests, started on demand and removed afterwards.

Every cluster has its own state folder and number, so tests use neither a user's cluster nor each other's. The next run
removes the clusters of a test run that was killed.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from reside.common.processes import ProcessId, boot_id, identify, is_alive
from reside.local import ClusterInfo, LocalCluster
from reside.local.allocation import file_lock, read_allocation

_BASE = Path(tempfile.gettempdir()) / f"reside-tests-{os.getuid()}"


@contextmanager
def shared_control_plane(name: str = "shared") -> Iterator[ClusterInfo]:
    """Run one control plane for all workers of a test run: the first starts it, and the last that uses it stops it."""
    sweep()
    owner = identify(os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid())
    assert owner is not None
    folder = _BASE / f"{owner.pid}-{owner.start}" / "shared"
    users = folder / "users"
    users.mkdir(parents=True, exist_ok=True, mode=0o700)
    me = users / str(os.getpid())
    cluster = LocalCluster(name, folder / name, control_plane_only=True)
    with file_lock(folder / ".lock"):
        me.touch()
        info = cluster.up()
    try:
        yield info
    finally:
        with file_lock(folder / ".lock"):
            me.unlink()
            if not any(identify(int(user.name)) for user in users.iterdir()):
                cluster.down(delete_state=True)


def fresh_state(name: str) -> Path:
    """Create a state folder; if this process does not remove it, a later run does."""
    sweep()
    me = identify(os.getpid())
    assert me is not None
    parent = _BASE / f"{me.pid}-{me.start}"
    parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    return Path(tempfile.mkdtemp(prefix="c", dir=parent)) / name


def sweep() -> None:
    """Remove the clusters of test processes that have ended."""
    _BASE.mkdir(exist_ok=True, mode=0o700)
    with file_lock(_BASE / ".lock"):
        for parent in _BASE.glob("*-*"):
            pid, _, start = parent.name.partition("-")
            if is_alive(ProcessId(int(pid), int(start), boot_id())):
                continue
            for state in parent.glob("*/*"):
                allocation = read_allocation(state)
                if allocation is not None:
                    LocalCluster(allocation.name, state).down(delete_state=True)
            shutil.rmtree(parent)
