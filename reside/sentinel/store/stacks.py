"""The last validated stacks, on the Sentinel's volume: what the guard restores, with or without Jazz.

Each stack has one JSON file, which is read once, and again only if another process has written it. Invariants: a file
is replaced atomically; only the leading Sentinel writes, with the exception that a Sentinel that starts may note the
end of a Job; values of secret references are stored in the vault only.
"""

from __future__ import annotations

import asyncio
import json
import threading
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import structlog

from reside.common.files import write_private
from reside.common.turns import in_rounds
from reside.model.errors import InvalidInput, NotReady
from reside.model.stacks import DesiredStack, K8sObject, object_key
from reside.sentinel.objects.index import KeyIndex
from reside.sentinel.objects.packed import PackedList, PackedObjects, packed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from reside.sentinel.objects.packed import Packed

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
    objects: Sequence[K8sObject] = ()
    applied: str | None = None
    finished: dict[str, K8sObject] = field(default_factory=dict)
    pending: frozenset[str] = frozenset()
    leaving: frozenset[str] = frozenset()

    @property
    def settled(self) -> bool:
        """Whether the last apply succeeded and no other is running."""
        return not self.pending and not self.leaving

    def by_key(self) -> Mapping[str, K8sObject]:
        """Return the objects by `Kind/name`; of a stack in a store, a look-up unpacks the object."""
        if isinstance(self.objects, PackedList):
            return PackedObjects(self.by_key_packed().items())
        return {object_key(obj): obj for obj in self.objects}

    def by_key_packed(self) -> dict[str, Packed]:
        """Return the packed objects by `Kind/name`."""
        return dict(zip(self._keys, packed(self.objects).packed, strict=True))

    def keys(self) -> frozenset[str]:
        """Return `Kind/name` of every object."""
        return frozenset(self._keys)

    @cached_property
    def _keys(self) -> tuple[str, ...]:
        return tuple(object_key(obj) for obj in self.objects)

    def packed(self) -> StoredStack:
        """Return this stack with packed objects, as it is kept in memory."""
        if isinstance(self.objects, PackedList):
            return self
        found = replace(self, objects=PackedList(self.objects))
        vars(found)["_keys"] = self._keys  # spares unpacking the objects
        return found

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
        self.verified = folder.parent / "verified"
        self._stacks: dict[str, StoredStack] = {}
        self._held = KeyIndex(self._released)
        self._listeners: list[Callable[[str], None]] = []
        self._files: dict[str, _File] = {}
        self._locks = tuple(threading.Lock() for _ in range(_LOCKS))
        """Locks of the files, each for a part of the names."""
        self.load()

    @property
    def stacks(self) -> Mapping[str, StoredStack]:
        """The stored stacks by name; read-only."""
        return self._stacks

    def load(self) -> None:
        """Read the files that another Sentinel has written."""
        for name in self._names():
            self.load_one(name)

    async def reload(self) -> None:
        """Read the files that another Sentinel has written, in several rounds of the event loop."""
        async for name in in_rounds(self._names(), FILES_AT_ONCE):
            self.load_one(name)

    def load_one(self, name: str) -> None:
        """Read the file of one stack, if another Sentinel has written it. A stack that is to be written is newer."""
        known = self._files.get(name)
        if self._stacks.get(name) is not (known.stored if known else None):
            return
        path = self._path(name)
        present = signature(path)
        if present is None:
            self._forget(name)
        elif known is None or present != known.signature:
            stored = _read(path)
            if stored is not None:
                self.put(stored)
            self._files[name] = _File(present, self._stacks.get(name))

    def put(self, stored: StoredStack) -> None:
        """Keep a stack in memory. The caller writes it with `save_aside`, which may be later."""
        self._stacks[stored.name] = stored.packed()
        self._held.put(stored.name, stored.held())

    def save(self, stored: StoredStack) -> None:
        """Store a stack; in memory even if the volume can't be written. It blocks until the disk has it.

        Raises:
            NotReady: the volume can't be written.
        """
        self.put(stored)
        self._write(stored.name)

    async def save_aside(self, stored: StoredStack) -> None:
        """Store a stack as `save` does, without blocking the event loop.

        Raises:
            NotReady: the volume can't be written.
        """
        self.put(stored)
        await asyncio.to_thread(self._write, stored.name)

    def remove(self, name: str) -> None:
        """Remove a stack.

        Raises:
            NotReady: the volume can't be written; the stack is unchanged.
        """
        path = self._path(name)
        with self._lock(name):
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise unwritable(path, error) from error
            self._forget(name)

    def listen(self, listener: Callable[[str], None]) -> Callable[[], None]:
        """Call `listener` with each object that no stack holds any more; return a function that unsubscribes it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def holder(self, key: str) -> str | None:
        """Return the name of the stack that holds the object `Kind/name`.

        A stack holds an object from the moment its apply begins until it is deleted, whether the apply succeeds or not.
        """
        return self._held.first(key)

    def _names(self) -> list[str]:
        """Return the names of all stacks that are stored or known."""
        found = {path.stem for path in self._folder.glob("*.json")}
        return sorted(found | self._stacks.keys() | self._files.keys())

    def _write(self, name: str) -> None:
        """Write the present state of a stack. Of several writes at the same time, the last one has the last state."""
        path = self._path(name)
        with self._lock(name):
            stored = self._stacks.get(name)
            if stored is None:
                return  # it was removed meanwhile
            try:
                write_file(path, json.dumps(_document(stored), ensure_ascii=False).encode())
            finally:
                self._files[name] = _File(signature(path), stored)

    def _released(self, key: str) -> None:
        for listener in list(self._listeners):
            listener(key)

    def _lock(self, name: str) -> threading.Lock:
        return self._locks[hash(name) % _LOCKS]

    def _forget(self, name: str) -> None:
        self._stacks.pop(name, None)
        self._files.pop(name, None)
        self._held.put(name, ())

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.json"


_LOCKS: Final = 16
FILES_AT_ONCE: Final = 25
"""Files that are read in one round of the event loop; that takes a few milliseconds."""

Signature = tuple[int, int, int]


class _File(NamedTuple):
    """A file as it was read or written last, and the stack that was kept in memory then."""

    signature: Signature | None
    stored: StoredStack | None


def signature(path: Path) -> Signature | None:
    """Return what tells that a file was replaced: inode, time of its last change, size; None if there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def write_file(path: Path, content: bytes, *, synced: bool = True) -> None:
    """Replace a file atomically, readable by its owner only.

    Args:
        path: the file.
        content: all of it.
        synced: whether it is synced to the disk.

    Raises:
        NotReady: the volume can't be written now; a retry may help.
    """
    try:
        write_private(path, content, synced=synced)
    except OSError as error:
        raise unwritable(path, error) from error


def unwritable(path: Path, error: OSError) -> NotReady:
    """Return the error for a file that can't be written."""
    return NotReady(f"{path} can't be written: {error.strerror}: check whether the volume is full or read-only")


def _document(stored: StoredStack) -> dict[str, Any]:
    return {
        "name": stored.name,
        "owner": stored.owner,
        "objects": list(stored.objects),
        "applied": stored.applied,
        "finished": stored.finished,
        "pending": sorted(stored.pending),
        "leaving": sorted(stored.leaving),
    }


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
