"""Reserve a unique number for every instance on this machine.

The number determines an instance's network or ports (see `layout`), so two instances must never share one. All
reservations of one kind are in one folder with one lock. Each is a file with the number as its name and the path of the
instance's state folder as its content. A reservation is invalid if that folder does not contain an instance with this
number.

Reservations of whole clusters (root) are in a folder that survives a reboot, because their Kubernetes objects contain
addresses of their network. Reservations of control planes alone are in a folder of the user. The control plane of
another user may have the same number, so the ports are checked as well.
"""

import fcntl
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from reside.common.files import write_private
from reside.local.errors import UsageError
from reside.local.layout import INDEXES

INSTANCE_FILE = "instance.json"
MACHINE_CLAIMS = Path("/var/lib/reside/instances")


def user_claims() -> Path:
    """Return the folder of the current user's reservations for control planes."""
    return Path(tempfile.gettempdir()) / f"reside-{os.getuid()}" / "instances"


@dataclass(frozen=True)
class Instance:
    """The properties of an instance that do not change while its state exists.

    Args:
        name: name of the instance.
        index: its number on this machine.
        control_plane_only: whether it has no node.
    """

    name: str
    index: int
    control_plane_only: bool


def read_instance(state: Path) -> Instance | None:
    """Return the instance that a state folder belongs to; None for a new folder."""
    path = state / INSTANCE_FILE
    if not path.exists():
        return None
    try:
        return Instance(**json.loads(path.read_text()))
    except (ValueError, TypeError) as error:
        raise UsageError(f"{path} is broken: remove the folder {state}, then run `reside local down`.") from error


@contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Wait for an exclusive lock on a file and hold it; the kernel releases it if this process dies."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with path.open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@dataclass(frozen=True)
class Claims:
    """The reservations in one folder.

    Args:
        folder: the folder.
    """

    folder: Path

    def claim(self, name: str, state: Path, usable: Callable[[int], bool], *, control_plane_only: bool) -> Instance:
        """Return the instance of this state folder; reserve a number if it has none or lost its reservation.

        Args:
            name: name of a new instance.
            state: state folder of the instance; the instance file is written there.
            usable: returns whether a free number is usable: nothing else uses its network or ports.
            control_plane_only: whether a new instance has no node.

        Raises:
            UsageError: no number is free, or the state folder is a copy of another instance's.
        """
        self._secure()
        with file_lock(self.folder / ".lock"):
            known = read_instance(state)
            if known is not None and self._holder(known.index) in (None, state):
                self._write(known.index, state)
                return known
            if known is not None and not known.control_plane_only:
                raise UsageError(
                    f"{state} holds cluster number {known.index}, which belongs to {self._holder(known.index)}: "
                    "a state folder can't be copied."
                )
            index = next((i for i in INDEXES if self._holder(i) is None and usable(i)), None)
            if index is None:
                raise UsageError(f"All {len(INDEXES)} local clusters of this machine are taken: see {self.folder}.")
            instance = Instance(name=name, index=index, control_plane_only=control_plane_only)
            state.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_private(state / INSTANCE_FILE, json.dumps(asdict(instance)) + "\n")
            self._write(index, state)
            return instance

    def lost(self, name: str, state: Path) -> Instance | None:
        """Return the instance whose state folder was deleted before it was taken down; None if there is none."""
        if not os.access(self.folder, os.R_OK | os.X_OK) or read_instance(state) is not None:
            return None  # a user can't read the reservations of root and does not need them
        for index in INDEXES:
            path = self.folder / str(index)
            if path.exists() and path.read_text() == str(state):
                return Instance(name, index, self.folder != MACHINE_CLAIMS)
        return None

    def release(self, index: int, state: Path) -> None:
        """Release a number if this state folder holds its reservation."""
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
                raise UsageError(f"{folder} belongs to another user: have it removed.")

    def _write(self, index: int, state: Path) -> None:
        write_private(self.folder / str(index), str(state))

    def _holder(self, index: int) -> Path | None:
        path = self.folder / str(index)
        if not path.exists():
            return None
        state = Path(path.read_text())
        holder = read_instance(state)
        return state if holder is not None and holder.index == index else None
