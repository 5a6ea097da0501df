"""The packages of a replica in TypeScript besides what ReSide provides: `package.json` and `package-lock.json`. Pure.

Only `dependencies` become part of the program, and the types of `@types/…`. Other `devDependencies` are for the editor
and the tests. A build installs exactly what the lock file has, so the same folder gives the same program, and only
packages whose content the lock file fixes by a hash. A package from Git is refused, because npm would run programs of
its repository.
"""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from reside.model.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from pathlib import Path

PACKAGE_FILE: Final = "package.json"
LOCK_FILE: Final = "package-lock.json"
NPM_SETTINGS: Final = ".npmrc"
_KINDS: Final = ("dependencies", "optionalDependencies")
_PEERS: Final = "peerDependencies"
_TYPES: Final = "@types/"
_IN: Final = "node_modules/"
_FETCHED: Final = ("https://", "http://")


@dataclass(frozen=True)
class NpmFiles:
    """The npm files of a folder, parsed.

    Args:
        folder: the folder, for messages.
        package: `package.json`; None: there is none.
        lock: `package-lock.json`; None: there is none.
    """

    folder: Path
    package: Mapping[str, Any] | None
    lock: Mapping[str, Any] | None

    @property
    def lock_file(self) -> Path:
        """Path of the lock file."""
        return self.folder / LOCK_FILE

    @property
    def entries(self) -> Mapping[str, Any]:
        """Path of each locked package → what the lock file says about it."""
        return _object(self.lock, "packages")


def read_npm_files(folder: Path) -> NpmFiles:
    """Read the npm files of a folder.

    Raises:
        InvalidInput: a file is not a JSON object.
    """
    return NpmFiles(folder, _read(folder / PACKAGE_FILE), _read(folder / LOCK_FILE))


def _read(file: Path) -> Mapping[str, Any] | None:
    try:
        found = json.loads(file.read_bytes())
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InvalidInput(f"{file} is not a JSON object: write it with `npm`")
    return found


def to_install(files: NpmFiles, provided: Mapping[str, str]) -> dict[str, str] | None:
    """Return the npm files with which the packages of a replica's own are installed; None if it has none.

    They have what the program needs and nothing else: no tools, no scripts, and nothing that ReSide provides.

    Args:
        files: the npm files of the replica.
        provided: package that ReSide provides → its version.

    Returns:
        name of each file → its content.

    Raises:
        InvalidInput: the lock file is missing, has another version of what ReSide provides, or has a package whose
            content it does not fix; the message names the cure.
    """
    _check_versions(files, provided)
    wanted = {name: str(spec) for kind in _KINDS for name, spec in _object(files.package, kind).items()}
    needed = sorted(wanted.keys() - provided.keys())
    wanted |= {k: str(v) for k, v in _object(files.package, "devDependencies").items() if k.startswith(_TYPES)}
    if not needed:
        return None
    if files.lock is None:
        names = ", ".join(needed)
        raise InvalidInput(
            f"{files.lock_file} is missing, and {PACKAGE_FILE} depends on {names}: run `npm install` in the folder"
        )
    if not isinstance(files.lock.get("packages"), dict):
        raise InvalidInput(f"{files.lock_file} is of npm 6 or older: run `npm install` with npm 7 or later")
    root = {"name": "program", "dependencies": {k: v for k, v in sorted(wanted.items()) if k not in provided}}
    entries = _reachable(files, root, provided)
    overrides = _object(files.package, "overrides")
    package = {**root, **({"overrides": overrides} if overrides else {})}
    lock = {"name": "program", "lockfileVersion": 3, "requires": True, "packages": {"": root, **entries}}
    return {name: json.dumps(content, indent=2) for name, content in ((PACKAGE_FILE, package), (LOCK_FILE, lock))}


def _check_versions(files: NpmFiles, provided: Mapping[str, str]) -> None:
    """Refuse other versions of provided packages: tests and editor would use others than the program."""
    for name, version in provided.items():
        found = _object(files.entries, f"{_IN}{name}").get("version", version)
        if found != version:
            raise InvalidInput(
                f"{files.lock_file} has {name} {found}, and replicas run with {version}: set this version in "
                f"{PACKAGE_FILE}, and run `npm install`"
            )


def _reachable(files: NpmFiles, root: dict[str, Any], provided: Mapping[str, str]) -> dict[str, Any]:
    """Return the locked packages that a root needs. A peer that npm has chosen becomes a dependency of the root."""
    outer = {f"{_IN}{name}" for name in provided}
    found: dict[str, Any] = {}
    queue = deque([("", root)])
    while queue:
        path, entry = queue.popleft()
        for each in (*_KINDS, _PEERS):
            targets = {name: _resolve(files.entries, path, name) for name in _object(entry, each)}
            entry |= _kept(
                entry, each, {name for name in targets if name in provided and targets[name] in {None, *outer}}
            )
            for name, target in targets.items():
                if target is None or target in outer:
                    continue
                if each == _PEERS and target == f"{_IN}{name}":
                    root["dependencies"].setdefault(name, str(_object(files.entries, target).get("version", "*")))
                if target not in found:
                    found[target] = _of_program(_object(files.entries, target))
                    _check_content(files, target.rpartition(_IN)[2], found[target])
                    queue.append((target, found[target]))
    return dict(sorted(found.items()))


def _kept(entry: Mapping[str, Any], kind: str, left_out: Collection[str]) -> dict[str, Any]:
    """Return the dependencies of a kind without those that ReSide provides; empty if there are none."""
    kept = {name: spec for name, spec in _object(entry, kind).items() if name not in left_out}
    return {kind: kept} if kind in entry else {}


def _resolve(entries: Mapping[str, Any], path: str, name: str) -> str | None:
    """Return the path of the package that an import in another package finds, as Node does: the innermost one."""
    for folder in _outwards(path):
        target = f"{folder}{_IN}{name}"
        if isinstance(entries.get(target), dict):
            return target
    return None


def _outwards(path: str) -> Iterator[str]:
    """Yield the folders in which a package looks for `node_modules`: its own, then those around it."""
    while path:
        yield f"{path}/"
        path = path.rpartition(_IN)[0].rstrip("/")
    yield ""


def _of_program(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry as it is among the packages of the program alone, without tools."""
    kept = {key: value for key, value in entry.items() if key not in ("dev", "devOptional", "peer")}
    return {**kept, "optional": True} if entry.get("devOptional") is True else kept


def _check_content(files: NpmFiles, name: str, entry: Mapping[str, Any]) -> None:
    source = entry.get("resolved", _FETCHED[0])
    if entry.get("link") is True or not str(source).startswith(_FETCHED):
        raise InvalidInput(
            f"{files.lock_file} has {name} from {source}: replicas are built from packages of a registry only. Publish "
            "it, or copy its files into the folder"
        )
    is_part_of_another = entry.get("inBundle") is True
    if not is_part_of_another and not isinstance(entry.get("integrity"), str):
        raise InvalidInput(f"{files.lock_file} has no hash of {name}: remove the file, and run `npm install`")


def _object(found: Mapping[str, Any] | None, name: str) -> Mapping[str, Any]:
    value = (found or {}).get(name)
    return value if isinstance(value, dict) else {}
