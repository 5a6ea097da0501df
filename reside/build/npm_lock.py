"""What a replica in TypeScript depends on besides what ReSide provides: `package.json` and `package-lock.json`. Pure.

Only `dependencies` become part of the program; `devDependencies` are for the editor and the tests. A build installs
exactly what the lock file has, so the same folder gives the same program, and only packages whose content the lock file
fixes by a hash. A package from Git is refused, because npm would run programs of its repository.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from reside.model.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

PACKAGE_FILE: Final = "package.json"
LOCK_FILE: Final = "package-lock.json"
NPM_SETTINGS: Final = ".npmrc"
_KINDS: Final = ("dependencies", "optionalDependencies")
_ROOT: Final = "node_modules/"
_FETCHED: Final = ("https://", "http://")


@dataclass(frozen=True)
class NpmFiles:
    """The npm files of a folder, parsed; None: there is no such file."""

    folder: Path
    package: Mapping[str, Any] | None
    lock: Mapping[str, Any] | None


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


def needs_packages(files: NpmFiles, provided: Mapping[str, str]) -> bool:
    """Return whether the program needs packages that ReSide does not provide.

    Args:
        files: the npm files of the replica.
        provided: package that ReSide provides → its version.

    Raises:
        InvalidInput: the lock file is missing, has another version of what ReSide provides, or has a package whose
            content it does not fix; the message names the cure.
    """
    _check_versions(files, provided)
    named = {name for kind in _KINDS for name in _object(files.package, kind)}
    if not named - provided.keys():
        return False
    where = files.folder / LOCK_FILE
    if files.lock is None:
        wanted = ", ".join(sorted(named - provided.keys()))
        raise InvalidInput(
            f"{where} is missing, and {PACKAGE_FILE} depends on {wanted}: run `npm install` in the folder"
        )
    if not isinstance(files.lock.get("packages"), dict):
        raise InvalidInput(f"{where} is of npm 6 or older: run `npm install` with npm 7 or later")
    for path, entry in _installed(files.lock):
        _check_content(where, path.rpartition(_ROOT)[2], entry)
    return True


def _check_versions(files: NpmFiles, provided: Mapping[str, str]) -> None:
    """Refuse other versions of provided packages: tests and editor would use others than the program."""
    entries = _object(files.lock, "packages")
    for name, version in provided.items():
        found = _object(entries, f"{_ROOT}{name}").get("version", version)
        if found != version:
            raise InvalidInput(
                f"{files.folder / LOCK_FILE} has {name} {found}, and replicas run with {version}: set this version in "
                f"{PACKAGE_FILE}, and run `npm install`"
            )


def _installed(lock: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield path and entry of the packages that are installed for a build."""
    entries = _object(lock, "packages")
    for path in sorted(entries):
        entry = _object(entries, path)
        is_bundled = entry.get("inBundle") is True  # its content is part of another package's
        if path and not is_bundled and not any(entry.get(kind) is True for kind in ("dev", "peer")):
            yield path, entry


def _check_content(file: Path, name: str, entry: Mapping[str, Any]) -> None:
    source = entry.get("resolved", _FETCHED[0])
    if entry.get("link") is True or not str(source).startswith(_FETCHED):
        raise InvalidInput(
            f"{file} has {name} from {source}: replicas are built from packages of a registry only. Publish it, or "
            "copy its files into the folder"
        )
    if not isinstance(entry.get("integrity"), str):
        raise InvalidInput(f"{file} has no hash of {name}: remove the file, and run `npm install`")


def _object(found: Mapping[str, Any] | None, name: str) -> Mapping[str, Any]:
    value = (found or {}).get(name)
    return value if isinstance(value, dict) else {}
