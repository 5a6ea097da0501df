"""The cache: entries that are complete or do not exist, and the sets of links that point to them."""

import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

MARKER = "complete.json"


def default_root() -> Path:
    """Return the folder of the toolchain's cache: `tools` in `RESIDE_CACHE`, or in `reside` in the user's cache."""
    own = os.environ.get("RESIDE_CACHE")
    base = Path(own) if own else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "reside"
    return base.absolute() / "tools"


def folder_hash(folder: Path, *more: str) -> str:
    """Return a hash of a module's folder, without its tests, and of everything else that its binaries depend on."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.name.startswith(".") and not path.name.endswith("_test.go"):
            content = path.read_bytes()
            digest.update(f"{path.relative_to(folder)}\0{len(content)}\0".encode())
            digest.update(content)
    for text in more:
        digest.update(f"{text}\0".encode())
    return digest.hexdigest()[:16]


@contextmanager
def locked(root: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold the cache's lock; call `waiting` if another build holds it."""
    root.mkdir(parents=True, exist_ok=True)
    with (root / ".lock").open("a") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@dataclass(frozen=True)
class Entry:
    """The binaries of one unit in the cache.

    Args:
        folder: `<root>/<unit>-<hash>`.
    """

    folder: Path

    @property
    def bin(self) -> Path:
        """Folder of the binaries."""
        return self.folder / "bin"

    def fault(self, binaries: Iterable[str]) -> str | None:
        """Return why the entry can't be used for these binaries; None if it can.

        Contents are read only if a file's time differs from the one in the marker.
        """
        if not self.folder.exists():
            return "not built yet"
        try:
            marker: Mapping[str, Mapping[str, object]] = json.loads((self.folder / MARKER).read_text())
        except (FileNotFoundError, ValueError):
            return "half-written"
        faults = (_file_fault(self.bin / name, marker.get(name)) for name in binaries)
        return next((fault for fault in faults if fault is not None), None)

    def write(self, fill: Callable[[Path], None]) -> None:
        """Let `fill` write all binaries into a new folder, mark it as complete, and replace an older entry with it."""
        draft = Path(tempfile.mkdtemp(prefix=f".{self.folder.name}-", dir=self.folder.parent))
        try:
            (draft / "bin").mkdir()
            fill(draft / "bin")
            marker = {path.name: _facts(path) for path in sorted((draft / "bin").iterdir())}
            (draft / MARKER).write_text(json.dumps(marker, indent=2) + "\n")
            draft.chmod(0o755)
            if self.folder.exists():
                shutil.rmtree(self.folder)
            draft.rename(self.folder)
        finally:
            shutil.rmtree(draft, ignore_errors=True)  # it no longer exists after the rename


def _file_fault(path: Path, facts: Mapping[str, object] | None) -> str | None:
    if facts is None:
        return f"without {path.name}"
    if not path.is_file() or path.stat().st_size != facts["size"]:
        return f"broken: {path.name} is missing or cut off"
    if path.stat().st_mtime_ns != facts["mtime_ns"] and file_hash(path) != facts["sha256"]:
        return f"broken: {path.name} is not what was built"
    return None if os.access(path, os.X_OK) else f"broken: {path.name} can't be run"


def file_hash(path: Path) -> str:
    """Return a file's SHA-256."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def _facts(path: Path) -> dict[str, object]:
    stat = path.stat()
    return {"size": stat.st_size, "mtime_ns": stat.st_mtime_ns, "sha256": file_hash(path)}


def sweep_drafts(root: Path) -> None:
    """Remove the incomplete folders of killed builds. The caller holds the lock."""
    for draft in root.glob(".*-*"):
        shutil.rmtree(draft)


def write_set(root: Path, binaries: Mapping[str, Path]) -> Path:
    """Create the folder of links to these binaries, and return it."""
    digest = hashlib.sha256(json.dumps({name: str(path) for name, path in binaries.items()}, sort_keys=True).encode())
    folder = root / "sets" / digest.hexdigest()[:16]
    links = folder / "bin"
    links.mkdir(parents=True, exist_ok=True)
    for name, path in binaries.items():
        point(links / name, path)
    return folder


def point(link: Path, target: Path) -> None:
    """Create a symbolic link, which atomically replaces an older one.

    Raises:
        FileExistsError: the path exists and is not a link.
    """
    if link.is_symlink() and link.readlink() == target:
        return
    if link.exists() and not link.is_symlink():
        raise FileExistsError(f"{link} is in the way: it should be a link to {target}. Remove it.")
    draft = link.with_name(f"{link.name}.new")
    draft.unlink(missing_ok=True)
    draft.symlink_to(target)
    draft.replace(link)


def unused(root: Path, used: Iterable[Path]) -> list[Path]:
    """Return entries and sets of earlier versions."""
    present = [*root.glob("[!.]*-*"), *(root / "sets").glob("*")]
    return sorted(set(present) - set(used))
