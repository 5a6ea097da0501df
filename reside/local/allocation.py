"""Allocate a unique index to every local cluster on this machine.

The index determines the addresses or ports of a local cluster (see `layout`), so two of them must never share one. All
allocations of one kind are in one folder with one lock. Each is a file with the index as its name and the path of the
cluster's state folder as its content. An allocation is valid only if the file `instance.json` in that state folder
contains the same index.

Allocations of full clusters (root) are in a folder that survives a reboot, because their Kubernetes objects contain
addresses of their network. Allocations of control planes alone are in a folder of the user. The control plane of
another user may have the same index, so the ports are checked as well.
"""

import fcntl
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from reside.common.files import write_private
from reside.local.errors import UsageError
from reside.local.layout import INDEXES, Layout

INSTANCE_FILE = "instance.json"
MACHINE_FOLDER = Path("/var/lib/reside/instances")


def user_folder() -> Path:
    """Return the folder of the current user's allocations. They are for local clusters without a node."""
    return Path(tempfile.gettempdir()) / f"reside-{os.getuid()}" / "instances"


@dataclass(frozen=True)
class Allocation:
    """An index allocated to a local cluster; it does not change while the cluster's state exists.

    Args:
        name: name of the local cluster.
        index: its index on this machine.
        control_plane_only: whether it has no node.
        ingress: whether it has an ingress controller and cert-manager.
        nodes: number of its nodes.
    """

    name: str
    index: int
    control_plane_only: bool
    ingress: bool = False
    nodes: int = 1


def read_allocation(state: Path) -> Allocation | None:
    """Return the allocation that a state folder contains; None for a new folder."""
    path = state / INSTANCE_FILE
    if not path.exists():
        return None
    try:
        return Allocation(**known_members(Allocation, json.loads(path.read_text())))
    except (ValueError, TypeError, AttributeError) as error:
        raise UsageError(f"{path} is invalid: remove the folder {state}, then run `reside local down`.") from error


def known_members(kind: type[Any], document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members that a dataclass has; a later release may have stored others, which this one ignores."""
    names = {member.name for member in fields(kind)}
    return {name: value for name, value in document.items() if name in names}


def layout_of(allocation: Allocation, state: Path) -> Layout:
    """Return the layout of a local cluster."""
    return Layout(
        allocation.name,
        allocation.index,
        state,
        allocation.control_plane_only,
        ingress=allocation.ingress,
        nodes=allocation.nodes,
    )


def extend(allocation: Allocation, state: Path, *, ingress: bool = False, nodes: int = 1) -> Allocation:
    """Store in the state folder what the local cluster has in addition from now on.

    Args:
        allocation: the stored allocation.
        state: the state folder.
        ingress: whether an ingress controller and cert-manager are added.
        nodes: number of nodes that it has at least.
    """
    added = replace(allocation, ingress=allocation.ingress or ingress)
    return with_nodes(added, state, max(allocation.nodes, nodes), stored=allocation)


def with_nodes(allocation: Allocation, state: Path, nodes: int, *, stored: Allocation | None = None) -> Allocation:
    """Store the number of nodes that the local cluster has from now on.

    Args:
        allocation: the allocation.
        state: the state folder.
        nodes: the number.
        stored: what the state folder has, if it differs from the allocation.
    """
    changed = replace(allocation, nodes=nodes)
    if changed != (stored or allocation):
        write_private(state / INSTANCE_FILE, json.dumps(asdict(changed)) + "\n")
    return changed


@contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Wait for an exclusive lock on a file and hold it; the kernel releases it if this process ends."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with path.open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@dataclass(frozen=True)
class IndexAllocator:
    """Allocate indexes and store the allocations in one folder.

    Args:
        folder: the folder.
    """

    folder: Path

    def allocate(
        self, name: str, state: Path, usable: Callable[[int], bool], *, control_plane_only: bool
    ) -> Allocation:
        """Return the allocation of this state folder; allocate an index if it has none or its allocation is invalid.

        Args:
            name: name of a new local cluster.
            state: its state folder; `instance.json` is written there.
            usable: returns whether a free index is usable: nothing else uses its network or ports.
            control_plane_only: whether a new local cluster has no node.

        Raises:
            UsageError: no index is free, or the state folder is a copy of another local cluster's.
        """
        self._secure()
        with file_lock(self.folder / ".lock"):
            existing = read_allocation(state)
            if existing is not None and self._holder(existing.index) in (None, state):
                self._write(existing.index, state)
                return existing
            if existing is not None and not existing.control_plane_only:
                raise UsageError(
                    f"{state} has the index {existing.index}, which is allocated to {self._holder(existing.index)}: "
                    f"a state folder can't be copied. Remove {state}, then run `reside local up` again."
                )
            index = next((i for i in INDEXES if self._holder(i) is None and usable(i)), None)
            if index is None:
                raise UsageError(
                    f"None of the {len(INDEXES)} indexes for local clusters is free: delete a local cluster with "
                    f"`reside local down --delete-state`. The files in {self.folder} contain their state folders."
                )
            allocation = Allocation(name=name, index=index, control_plane_only=control_plane_only)
            state.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_private(state / INSTANCE_FILE, json.dumps(asdict(allocation)) + "\n")
            self._write(index, state)
            return allocation

    def orphaned(self, name: str, state: Path) -> Allocation | None:
        """Return the allocation whose state folder was deleted before `down`; None if there is none."""
        if not os.access(self.folder, os.R_OK | os.X_OK) or read_allocation(state) is not None:
            return None  # a user can't read the allocations of root and does not need them
        for index in INDEXES:
            path = self.folder / str(index)
            if path.exists() and path.read_text() == str(state):
                return Allocation(name, index, self.folder != MACHINE_FOLDER)
        return None

    def release(self, index: int, state: Path) -> None:
        """Release an index if it is allocated to this state folder."""
        self._secure()
        with file_lock(self.folder / ".lock"):
            path = self.folder / str(index)
            if path.exists() and path.read_text() == str(state):
                path.unlink()

    def _secure(self) -> None:
        """Create the folder; refuse one that another user created in a shared location."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for folder in (self.folder, self.folder.parent):
            if folder.lstat().st_uid != os.getuid():
                raise UsageError(f"{folder} belongs to another user: ask that user or root to remove it.")

    def _write(self, index: int, state: Path) -> None:
        write_private(self.folder / str(index), str(state))

    def _holder(self, index: int) -> Path | None:
        path = self.folder / str(index)
        if not path.exists():
            return None
        state = Path(path.read_text())
        holder = read_allocation(state)
        return state if holder is not None and holder.index == index else None
