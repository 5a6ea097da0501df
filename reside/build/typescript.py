"""The program of a replica in TypeScript: `main.ts`, what it imports and its packages, checked and bundled in one file.

The bundle contains `@reside/replica`, so a replica runs with the version that it was built and checked with, and Node
reads one file at the start. Invariants: nothing of the folder or of a package is run, and no other file of this machine
is read into the bundle; the same folder with the same tools gives the same bytes on every machine.
"""

from __future__ import annotations

import json
import os
import shutil
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from reside.build.cache import INCOMPLETE, cached
from reside.build.context import digest
from reside.build.language import BUNDLE
from reside.build.npm_lock import LOCK_FILE, NPM_SETTINGS, PACKAGE_FILE, read_npm_files, to_install
from reside.build.typescript_kit import NATIVE, Kit, kit, npm, run
from reside.model.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from reside.build.source import Source

MAIN: Final = "main.ts"
_SETTINGS: Final = "tsconfig.json"
_SOURCES: Final = (".ts", ".mts", ".cts", ".tsx", ".tgz")
_NOT_IN_IMAGE: Final = (PACKAGE_FILE, LOCK_FILE, NPM_SETTINGS)
_OPTIONS: Final = {"noEmit": True, "incremental": False, "composite": False, "skipLibCheck": True}
_DEFAULTS: Final = {
    "target": "es2023",
    "module": "nodenext",
    "strict": True,
    "erasableSyntaxOnly": True,
    "verbatimModuleSyntax": True,
    "types": ["node"],
    "lib": ["es2023", "dom"],
}
"""The compiler's options of a folder without tsconfig.json: what Node runs without compilation, as in tests."""
# Packages in the older module format call `require`, which a bundle does not have otherwise
_BANNER: Final = 'import { createRequire as $require } from "node:module"; const require = $require(import.meta.url);'
_BUNDLING: Final = (
    "--bundle",
    "--platform=node",
    "--format=esm",
    "--target=node22",
    f"--external:{NATIVE}",
    f"--banner:js={_BANNER}",
    "--charset=utf8",
    "--log-level=error",
    "--log-limit=20",
    "--color=false",
)
_LEFT_OUT: Final = "(disabled):"
"""What the bundler puts before a module that a package leaves out on this platform."""
_MOST_LINES: Final = 20


@contextmanager
def bundled(source: Source, progress: Callable[[str], None] = lambda _line: None) -> Iterator[Mapping[str, Path]]:
    """Check and bundle a replica; yield the files of its image, which exist as long as the block.

    Files that are no source code, such as web pages, are in the image as they are.

    Args:
        source: the replica; its folder contains `main.ts`.
        progress: called with one line for each step that takes long.

    Yields:
        path relative to the program's folder → file.

    Raises:
        InvalidInput: a type is wrong, an import is missing, or the dependencies can't be used; its notes are
            the compiler's lines.
        UsageError: Node.js or npm is not installed.
        LocalError: npm or the compiler failed.
    """
    names = source.files()
    if BUNDLE in names:
        raise InvalidInput(f"{source.folder / BUNDLE} would be replaced by the program: give it another name")
    tools = kit(progress)
    npm_files = to_install(read_npm_files(source.folder), tools.provided)
    own = _install(npm_files, source.folder / NPM_SETTINGS, progress) if npm_files is not None else None
    with TemporaryDirectory(prefix=INCOMPLETE, dir=tools.folder) as scratch:
        app = Path(scratch) / "app"
        _stage(source.folder, names, app)
        if own is not None:
            _add_packages(own, app)
        progress(f"checking the types of {source.folder}")
        _check(app, tools, source.folder)
        bundle = Path(scratch) / BUNDLE
        _bundle(app, bundle, tools, source.folder)
        yield {**{name: source.folder / name for name in names if _is_content(name)}, BUNDLE: bundle}


def _is_content(name: str) -> bool:
    path = PurePosixPath(name)
    settings = path.name.startswith("tsconfig") and path.suffix == ".json"
    return path.suffix not in _SOURCES and path.name not in _NOT_IN_IMAGE and not settings


def _stage(folder: Path, names: list[str], app: Path) -> None:
    for name in names:
        target = app / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(folder / name, target)
    if not (app / PACKAGE_FILE).exists():  # without one, the folder above would be the package
        (app / PACKAGE_FILE).write_text('{"private": true, "type": "module"}')


def _install(npm_files: Mapping[str, str], settings: Path, progress: Callable[[str], None]) -> Path:
    """Return the folder with `node_modules` of the replica's own packages, from the cache or as locked."""

    def install(target: Path) -> None:
        progress("installing the locked packages")
        for name, content in npm_files.items():
            (target / name).write_text(content, encoding="utf-8")
        if settings.exists():
            shutil.copyfile(settings, target / NPM_SETTINGS)
        npm(target, "ci", "--legacy-peer-deps")  # the peers that are needed are dependencies here
        (target / NPM_SETTINGS).unlink(missing_ok=True)  # it may contain a password
        (target / "node_modules").mkdir(exist_ok=True)

    return cached("npm", digest(*npm_files.values()), install)


def _add_packages(own: Path, app: Path) -> None:
    """Put the replica's own packages beside its code. What the tools provide is found above.

    They are links to the same files, so that imports between packages have the same paths on every machine.
    """
    shutil.copytree(own / "node_modules", app / "node_modules", copy_function=os.link, symlinks=True)


def _check(app: Path, tools: Kit, folder: Path) -> None:
    has_settings = (app / _SETTINGS).exists()
    settings = {
        **({"extends": f"./app/{_SETTINGS}"} if has_settings else {}),
        "compilerOptions": {**({} if has_settings else _DEFAULTS), **_OPTIONS, "allowImportingTsExtensions": True},
        "files": [f"app/{MAIN}"],
        "include": ["app/**/*.d.ts"],
        "exclude": ["app/**/node_modules"],
    }
    (app.parent / _SETTINGS).write_text(json.dumps(settings))
    done = run([*tools.compiler, "--pretty", "false", "-p", f"../{_SETTINGS}"], app)
    if done.returncode != 0:
        raise _with_output(f"{folder} has errors of types: correct them", done.stdout or done.stderr)


def _bundle(app: Path, bundle: Path, tools: Kit, folder: Path) -> None:
    report = app.parent / "inputs.json"
    done = run([*tools.bundler, MAIN, *_BUNDLING, f"--metafile=../{report.name}", f"--outfile=../{bundle.name}"], app)
    if done.returncode != 0:
        raise _with_output(f"{folder} can't be bundled", done.stderr)
    found = outside(json.loads(report.read_bytes())["inputs"], app, (tools.folder, tools.packages))
    if found is not None:
        bundle.unlink()
        raise InvalidInput(f"the program of {folder} imports {found}, which is outside of the folder: copy it there")


def outside(inputs: Iterable[str], app: Path, packages: Sequence[Path]) -> str | None:
    """Return a file that is neither of a program's folder nor of a provided package; None if there is none.

    A hostile package could otherwise name a file of this machine, such as one with passwords, without running here.

    Args:
        inputs: paths relative to the program's folder.
        app: the program's folder.
        packages: the folders whose `node_modules` have the provided packages.
    """
    allowed = [str(app), *(str(each / "node_modules") for each in packages)]
    for name in inputs:
        path = os.path.normpath(app / name.removeprefix(_LEFT_OUT))
        if not any(path.startswith(f"{each}{os.sep}") for each in allowed):
            return path
    return None


def _with_output(message: str, output: str) -> InvalidInput:
    """Return an error whose notes are the first lines of a tool's output."""
    error, lines = InvalidInput(message), output.strip().splitlines()
    for line in lines[:_MOST_LINES]:
        error.add_note(line)
    if len(lines) > _MOST_LINES:
        error.add_note(f"and {len(lines) - _MOST_LINES} more lines")
    return error
