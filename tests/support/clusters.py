"""Real clusters for tests, started on demand and removed afterwards.

Use them from a fixture:

    from support.clusters import control_plane


    @pytest.fixture(scope="session")
    def cluster() -> Iterator[ClusterInfo]:
        with control_plane() as info:
            yield info

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
def control_plane(name: str = "control-plane") -> Iterator[ClusterInfo]:
    """Run etcd, API server and controller-manager on loopback. It needs no root and starts in about five seconds."""
    with _running(name, control_plane_only=True) as info:
        yield info


@contextmanager
def full_cluster(name: str = "test") -> Iterator[ClusterInfo]:
    """Run a complete single-node cluster with DNS, storage and registry. It needs root."""
    with _running(name, control_plane_only=False) as info:
        yield info


@contextmanager
def _running(name: str, *, control_plane_only: bool) -> Iterator[ClusterInfo]:
    state = fresh_state(name)
    cluster = LocalCluster(name, state, control_plane_only=control_plane_only)
    try:
        yield cluster.up()
    finally:
        cluster.down(delete_state=True)
        shutil.rmtree(state.parent)


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
