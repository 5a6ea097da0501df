"""The control group above all pods of an instance.

It keeps two kubelets from taking each other's groups for orphans, and finds every process of every container.

Works with both versions: one folder in each hierarchy of version 1, or one folder of version 2.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from reside.common.processes import ProcessId, identify

_ROOT = Path("/sys/fs/cgroup")
_MOUNTS = Path("/proc/self/mounts")
_CPUSET = ("cpuset.cpus", "cpuset.mems")
_V2_CONTROLLERS = ("cpuset", "cpu", "io", "memory", "hugetlb", "pids")


def ensure(name: str) -> None:
    """Make the group in every hierarchy."""
    hierarchies = list(_hierarchies())
    versions = {kind for _, kind in hierarchies}
    for mount, kind in hierarchies:
        if kind == "cgroup2" and "cgroup" in versions:
            continue  # version 2 beside version 1 has no controllers; runc makes its groups there itself
        if kind == "cgroup2":
            _delegate(mount)
        group = mount / name
        group.mkdir(exist_ok=True)
        for item in _CPUSET:
            # Version 1 starts with empty sets, in which no process may live
            if kind == "cgroup" and (group / item).exists() and not (group / item).read_text().strip():
                (group / item).write_text((mount / item).read_text())


def processes(name: str) -> list[ProcessId]:
    """Return every process in the group and in the groups below."""
    folders = [Path(folder) for mount, _ in _hierarchies() for folder, _, _ in os.walk(mount / name)]
    pids = {pid for folder in folders for pid in _members(folder)}
    return [process for pid in sorted(pids) if (process := identify(pid)) is not None]


def remove(name: str) -> None:
    """Remove the group and all below; no process must be left in it."""
    for mount, _ in _hierarchies():
        group = mount / name
        if group.exists():
            below = [path for path in group.rglob("*") if path.is_dir()]
            for path in sorted(below, key=lambda path: len(path.parts), reverse=True):
                path.rmdir()
            group.rmdir()


def _members(group: Path) -> list[int]:
    """Process ids in one group; none if it was removed meanwhile, as those of ending containers are."""
    try:
        return [int(line) for line in (group / "cgroup.procs").read_text().split()]
    except FileNotFoundError:
        return []
    except OSError as error:
        if error.errno != errno.ENODEV:  # removed between opening and reading (cgroups(7))
            raise
        return []


def _hierarchies() -> Iterator[tuple[Path, str]]:
    """Yield mount and kind of every hierarchy."""
    for line in _MOUNTS.read_text().splitlines():
        _, mount, kind, *_ = line.split()
        if kind in {"cgroup", "cgroup2"} and mount.startswith(str(_ROOT)):
            yield Path(mount), kind


def _delegate(mount: Path) -> None:
    available = (mount / "cgroup.controllers").read_text().split()
    for controller in _V2_CONTROLLERS:
        if controller in available:
            with suppress(OSError):  # the kubelet names the one that it misses
                (mount / "cgroup.subtree_control").write_text(f"+{controller}")
