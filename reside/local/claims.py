"""Gives every instance on this machine a number of its own.

A number decides an instance's network or ports (see `layout`), so two instances must never share one. The claims
of one kind lie in one folder, guarded by one lock: a file a number, holding the claimant's state folder.
A claim is dead when that folder no longer says that it is this number's instance.

Whole clusters (root) claim in a folder that outlives a reboot, because their objects hold addresses of their network.
Control planes alone claim in a folder of the user; that another user's may have the same number is caught by asking
whether the ports are free.
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
    """Return the folder of the present user's claims of control planes."""
    return Path(tempfile.gettempdir()) / f"reside-{os.getuid()}" / "instances"


@dataclass(frozen=True)
class Instance:
    """What an instance is, for as long as its state exists.

    Args:
        name: Its name.
        index: Its number on the machine.
        control_plane_only: Its kind, which never changes.
    """

    name: str
    index: int
    control_plane_only: bool


def read_instance(state: Path) -> Instance | None:
    """Read which instance a state folder belongs to; None for a new folder."""
    path = state / INSTANCE_FILE
    if not path.exists():
        return None
    try:
        return Instance(**json.loads(path.read_text()))
    except (ValueError, TypeError) as error:
        raise UsageError(f"{path} is broken: remove the folder {state}, then run `reside local down`.") from error


@contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on a file, waiting for it; the system frees it should this process die."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with path.open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@dataclass(frozen=True)
class Claims:
    """The numbers given out in one folder.

    Args:
        folder: Where the claims lie.
    """

    folder: Path

    def claim(self, name: str, state: Path, usable: Callable[[int], bool], *, control_plane_only: bool) -> Instance:
        """Return the instance of this state folder, giving it a number if it has none or lost its own.

        Args:
            name: The instance's name, for a new one.
            state: Its state folder; its instance file is written.
            usable: Whether a free number would do: its network or ports are not used by somebody else.
            control_plane_only: The kind of a new instance.

        Raises:
            UsageError: No number is free, or the state folder is a copy of another instance's.
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
        """Return the instance whose state folder was deleted without taking it down; None if there is none."""
        if not os.access(self.folder, os.R_OK | os.X_OK) or read_instance(state) is not None:
            return None  # the claims of root are not a user's business
        for index in INDEXES:
            path = self.folder / str(index)
            if path.exists() and path.read_text() == str(state):
                return Instance(name, index, self.folder != MACHINE_CLAIMS)
        return None

    def release(self, index: int, state: Path) -> None:
        """Give the number back, if it is this state folder's."""
        self._secure()
        with file_lock(self.folder / ".lock"):
            path = self.folder / str(index)
            if path.exists() and path.read_text() == str(state):
                path.unlink()

    def _secure(self) -> None:
        """Make the folder; refuse one that somebody else prepared in a shared place."""
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
