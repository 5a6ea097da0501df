"""The last validated stacks, on the Sentinel's volume: what the guard restores, with or without Jazz.

Each stack has one JSON file. Invariants: a file is replaced atomically; only the leading Sentinel writes, with the
exception that a Sentinel that starts may note the end of a Job; values of secret references are stored in
the vault only.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import structlog

from reside.common.files import write_private
from reside.model.errors import InvalidInput, NotReady
from reside.model.stacks import DesiredStack, K8sObject, object_key
from reside.sentinel.objects.index import KeyIndex

if TYPE_CHECKING:
    from pathlib import Path

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class StoredStack:
    """A stack that passed all checks.

    Attributes:
        name: name of the stack.
        owner: the account that declared it first; only it may change the stack.
        objects: its objects, with references in place of secret values.
        applied: revision that the engine applied last; None: none yet, or the apply failed.
        finished: Jobs that have ended, in the last state that was seen.
        pending: objects that an apply is changing or failed to change; they must not be reverted to `objects`.
        leaving: objects that the same apply deletes.
    """

    name: str
    owner: str
    objects: tuple[K8sObject, ...] = ()
    applied: str | None = None
    finished: dict[str, K8sObject] = field(default_factory=dict)
    pending: frozenset[str] = frozenset()
    leaving: frozenset[str] = frozenset()

    @property
    def settled(self) -> bool:
        """Whether the last apply succeeded and no other is running."""
        return not self.pending and not self.leaving

    def by_key(self) -> dict[str, K8sObject]:
        """Return the objects by `Kind/name`."""
        return {object_key(obj): obj for obj in self.objects}

    def keys(self) -> frozenset[str]:
        """Return `Kind/name` of every object."""
        return frozenset(object_key(obj) for obj in self.objects)

    def held(self) -> frozenset[str]:
        """Return `Kind/name` of every object that the stack contains, changes or deletes."""
        return self.keys() | self.pending | self.leaving

    def during_apply(self, desired: DesiredStack) -> StoredStack:
        """Return this stack as it is stored while `desired` is being applied."""
        before, after = self.by_key(), {object_key(obj): obj for obj in desired.objects}
        changing = {key for key in after if before.get(key) != after[key]}
        leaving = (before.keys() | self.pending | self.leaving) - after.keys()
        return replace(self, pending=frozenset((self.pending | changing) - leaving), leaving=frozenset(leaving))

    def after_apply(self, desired: DesiredStack) -> StoredStack:
        """Return this stack as it is stored after `desired` was applied."""
        keys = set(desired.keys())
        finished = {key: live for key, live in self.finished.items() if key in keys}
        return StoredStack(self.name, self.owner, desired.objects, desired.revision, finished)


class StackStore:
    """The stored stacks by name, in memory and on the volume.

    Args:
        folder: folder of the files; created if it does not exist.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.prune_record = folder.parent / "prune.json"
        self.stacks: dict[str, StoredStack] = {}
        self._held = KeyIndex()
        self.load()

    def load(self) -> None:
        """Read all files again, because another Sentinel may have written them."""
        found = [_read(path) for path in sorted(self._folder.glob("*.json"))]
        self.stacks = {stored.name: stored for stored in found if stored is not None}
        self._held = KeyIndex()
        for name, stored in self.stacks.items():
            self._held.put(name, stored.held())

    def save(self, stored: StoredStack) -> None:
        """Store a stack; in memory even if the volume can't be written.

        Raises:
            NotReady: the volume can't be written.
        """
        self.stacks[stored.name] = stored
        self._held.put(stored.name, stored.held())
        document = {
            "name": stored.name,
            "owner": stored.owner,
            "objects": list(stored.objects),
            "applied": stored.applied,
            "finished": stored.finished,
            "pending": sorted(stored.pending),
            "leaving": sorted(stored.leaving),
        }
        write_file(self._path(stored.name), json.dumps(document, ensure_ascii=False, indent=1).encode())

    def remove(self, name: str) -> None:
        """Remove a stack.

        Raises:
            NotReady: the volume can't be written; the stack is unchanged.
        """
        path = self._path(name)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise _unwritable(path, error) from error
        self.stacks.pop(name, None)
        self._held.put(name, ())

    def holder(self, key: str) -> str | None:
        """Return the name of the stack that holds the object `Kind/name`.

        A stack holds an object from the moment its apply begins until it is deleted, whether the apply succeeds or not.
        """
        return min(self._held.names(key), default=None)

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.json"


def write_file(path: Path, content: bytes) -> None:
    """Replace a file atomically, readable by its owner only, and sync it to the disk.

    Raises:
        NotReady: the volume can't be written now; a retry may help.
    """
    try:
        write_private(path, content)
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> NotReady:
    return NotReady(f"{path} can't be written: {error.strerror}: check whether the volume is full or read-only")


def _read(path: Path) -> StoredStack | None:
    """Return the stack in a file; None if the file is malformed, or was removed since the folder was listed."""
    try:
        data: Any = json.loads(path.read_text(encoding="utf-8"))
        objects = tuple(data["objects"])
        for obj in objects:
            object_key(obj)
        return StoredStack(
            name=data["name"],
            owner=data["owner"],
            objects=objects,
            applied=data["applied"],
            finished=data["finished"],
            pending=frozenset(data["pending"]),
            leaving=frozenset(data["leaving"]),
        )
    except FileNotFoundError:
        return None  # the leader has just removed the stack
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, InvalidInput) as error:
        # The leader writes the file again from Jazz; the other stacks must work.
        _log.error("ignoring unreadable stored stack", path=str(path), error=repr(error))
        return None
