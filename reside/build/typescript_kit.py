"""The tools for replicas in TypeScript: the package `@reside/replica`, compiled, with TypeScript and a bundler.

npm installs them into the cache once, as locked in the package's folder, and runs no script of a package. The compiled
package is in a folder inside of that of the packages, so imports in a folder inside of it find all of them. Paths
between them are the same on every machine, which is why a bundle has the same bytes everywhere.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from reside.build.cache import INCOMPLETE, cached, remove_incomplete
from reside.build.context import digest, files_in
from reside.build.npm_lock import LOCK_FILE, PACKAGE_FILE
from reside.local.errors import LocalError, ToolMissingError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

NAME: Final = "@reside/replica"
NATIVE: Final = "cojson-core-napi"
"""The package that is not JavaScript: the runtime image has it."""
_CURES: Final = {
    "node": "install Node.js 22.18 or later, which replicas in TypeScript are built and tested with.",
    "npm": "install npm, which comes with Node.js (Debian has a package npm).",
}
_PROJECT: Final = "tsconfig.build.json"
_WITHIN_S: Final = 600
_QUIET: Final = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error")


@dataclass(frozen=True)
class Kit:
    """The installed tools.

    Args:
        packages: the folder of the packages, with `node_modules`.
        folder: the folder of the compiled package, in that folder; folders inside of it find all packages.
        settings: `package.json` of `@reside/replica`.
    """

    packages: Path
    folder: Path
    settings: Mapping[str, Any]

    @property
    def provided(self) -> dict[str, str]:
        """What programs may import without a dependency of their own: package → version."""
        return {NAME: self.settings["version"], **self.settings["dependencies"]}

    @property
    def archive(self) -> Path:
        """The package as `npm pack` writes it, for editors and tests."""
        return self.folder / f"reside-replica-{self.settings['version']}.tgz"

    @property
    def compiler(self) -> list[str]:
        """The command of TypeScript's compiler."""
        return [find("node"), str(self.packages / "node_modules/typescript/bin/tsc")]

    @property
    def bundler(self) -> list[str]:
        """The command of the bundler, a program of this platform."""
        found = sorted((self.packages / "node_modules/@esbuild").glob("*/bin/esbuild"))
        if not found:
            raise LocalError(f"{self.packages} has no bundler for this platform: remove the folder, and build again")
        return [str(found[0])]


def sdk_folder() -> Path:
    """Return the folder of `@reside/replica`: that of the checkout, or its copy in the installed package."""
    checkout = Path(__file__).resolve().parents[2] / "sdk/typescript"
    return checkout if checkout.is_dir() else Path(__file__).resolve().with_name("typescript_sdk")


def kit(progress: Callable[[str], None] = lambda _line: None) -> Kit:
    """Return the tools; the first call on a machine installs them.

    Raises:
        ToolMissingError: Node.js or npm is not installed.
        LocalError: the registry of npm can't be used, or the package can't be compiled.
    """
    for name in _CURES:
        find(name)
    source = sdk_folder()
    packages = sdk_packages(progress)
    folder = packages / f"sdk-{_sdk_key(source)[:16]}"
    if not folder.exists():
        progress("compiling @reside/replica")
        _make(packages, folder, source)
    remove_incomplete(folder)
    return Kit(packages, folder, json.loads((source / PACKAGE_FILE).read_bytes()))


def sdk_packages(progress: Callable[[str], None] = lambda _line: None) -> Path:
    """Return the folder with the locked packages of `@reside/replica`, installed on first use."""
    source = sdk_folder()
    locked = [source / PACKAGE_FILE, source / LOCK_FILE]

    def install(folder: Path) -> None:
        progress("installing the tools for TypeScript")
        for file in locked:
            shutil.copyfile(file, folder / file.name)
        # `npm ci` requires the optional packages of other platforms, and some registries do not have them
        npm(folder, "install", "--omit-lockfile-registry-resolved")
        if _contents(folder / LOCK_FILE) != _contents(source / LOCK_FILE):
            raise LocalError(f"{source / LOCK_FILE} does not match {PACKAGE_FILE}: run `npm install` there")

    return cached("typescript", digest(*(file.read_bytes() for file in locked)), install)


def _contents(lock: Path) -> dict[str, tuple[Any, Any]]:
    """Return version and hash of each package of a lock file; versions of npm write the rest in different ways."""
    entries = json.loads(lock.read_bytes())["packages"]
    return {path: (entry.get("version"), entry.get("integrity")) for path, entry in entries.items()}


def find(name: str) -> str:
    """Return the path of `node` or `npm`.

    Raises:
        ToolMissingError: it is not installed.
    """
    found = shutil.which(name)
    if found is None:
        raise ToolMissingError(name, _CURES[name])
    return found


def npm(folder: Path, command: str, *arguments: str) -> None:
    """Run npm in a folder, without scripts of packages.

    Raises:
        LocalError: it failed; the message has the first of its errors.
    """
    done = run([find("npm"), command, *_QUIET, *arguments], folder)
    if done.returncode != 0:
        raise LocalError(f"`npm {command}` failed:\n{_errors_of(done.stderr)}")


def _errors_of(output: str) -> str:
    """Return the first lines with errors, which the manual of the command may follow."""
    lines = [line for line in output.splitlines() if not line.startswith("npm warn")]
    return "\n".join(lines)[:2000].strip()


def run(command: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a tool in a folder.

    Raises:
        LocalError: it did not end in time.
    """
    try:
        return subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_WITHIN_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise LocalError(f"{Path(command[0]).name} did not end within {_WITHIN_S} s: build again") from None


def _sdk_key(source: Path) -> str:
    parts: list[str | bytes] = [(source / _PROJECT).read_bytes(), (source / "tsconfig.json").read_bytes()]
    for file in files_in(source / "src"):
        parts += [file.name, file.read_bytes()]
    return digest(*parts, (source / "README.md").read_bytes())


def _make(packages: Path, folder: Path, source: Path) -> None:
    """Compile and pack the package; another build may do the same at the same time."""
    made = Path(tempfile.mkdtemp(prefix=INCOMPLETE, dir=packages))
    try:
        copied = made / "package"
        for file in (PACKAGE_FILE, _PROJECT, "tsconfig.json", "README.md"):
            copied.mkdir(exist_ok=True)
            shutil.copyfile(source / file, copied / file)
        shutil.copytree(source / "src", copied / "src")
        compiler = Kit(packages, made, {}).compiler
        done = run([*compiler, "-p", _PROJECT], copied)
        if done.returncode != 0:
            raise LocalError(f"@reside/replica can't be compiled:\n{done.stdout.strip()[-2000:]}")
        npm(copied, "pack", "--offline", "--pack-destination", str(made))
        installed = made / "node_modules" / NAME
        installed.mkdir(parents=True)
        (copied / "dist").rename(installed / "dist")
        shutil.copyfile(source / PACKAGE_FILE, installed / PACKAGE_FILE)
        shutil.rmtree(copied)
        made.chmod(0o755)
        if not folder.exists():
            made.rename(folder)
    except OSError:
        if not folder.exists():  # else the other build was faster
            raise
    finally:
        shutil.rmtree(made, ignore_errors=True)
