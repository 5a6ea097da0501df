"""The parent control groups of the pods of a local cluster, and of each further node in it.

With separate parents, a kubelet does not treat the groups of another kubelet as orphans. The group also lists every
process of every container.

Both versions are supported: one folder in each hierarchy of version 1, or one folder of version 2.
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
    """Create the group, which may be inside another one, in every hierarchy."""
    hierarchies = list(_hierarchies())
    versions = {kind for _, kind in hierarchies}
    for mount, kind in hierarchies:
        if kind == "cgroup2" and "cgroup" in versions:
            continue  # next to version 1 it has no controllers; runc creates its own groups there
        parent = mount
        for part in Path(name).parts:
            if kind == "cgroup2":
                _delegate(parent)
            group = parent / part
            group.mkdir(exist_ok=True)
            if kind == "cgroup":
                _copy_cpuset(parent, group)
            parent = group


def processes(name: str) -> list[ProcessId]:
    """Return every process in the group and its subgroups."""
    folders = [Path(folder) for mount, _ in _hierarchies() for folder, _, _ in os.walk(mount / name)]
    pids = {pid for folder in folders for pid in _members(folder)}
    return [process for pid in sorted(pids) if (process := identify(pid)) is not None]


def remove(name: str) -> None:
    """Remove the group and its subgroups; they must not contain processes."""
    for mount, _ in _hierarchies():
        group = mount / name
        if group.exists():
            below = [path for path in group.rglob("*") if path.is_dir()]
            for path in sorted(below, key=lambda path: len(path.parts), reverse=True):
                path.rmdir()
            group.rmdir()


def _members(group: Path) -> list[int]:
    """Return the process ids in one group; none if it was removed in the meantime, because its container ended."""
    try:
        return [int(line) for line in (group / "cgroup.procs").read_text().split()]
    except FileNotFoundError:
        return []
    except OSError as error:
        if error.errno != errno.ENODEV:  # removed between opening and reading (cgroups(7))
            raise
        return []


def _hierarchies() -> Iterator[tuple[Path, str]]:
    """Yield the mount point and file system type of every hierarchy."""
    for line in _MOUNTS.read_text().splitlines():
        _, mount, kind, *_ = line.split()
        if kind in {"cgroup", "cgroup2"} and mount.startswith(str(_ROOT)):
            yield Path(mount), kind


def _copy_cpuset(parent: Path, group: Path) -> None:
    """Copy the CPU set of the parent: version 1 starts with empty sets, and no process can join such a group."""
    for item in _CPUSET:
        if (group / item).exists() and not (group / item).read_text().strip():
            (group / item).write_text((parent / item).read_text())


def _delegate(group: Path) -> None:
    available = (group / "cgroup.controllers").read_text().split()
    for controller in _V2_CONTROLLERS:
        if controller in available:
            with suppress(OSError):  # the kubelet reports a missing controller
                (group / "cgroup.subtree_control").write_text(f"+{controller}")
