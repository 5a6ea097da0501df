"""The dependencies of the Python programs, as locked in uv.lock, in a virtual environment.

This machine's uv installs the packages with its cache; then they are copied into the image. A virtual environment is a
link to an interpreter, a pyvenv.cfg and a folder of packages. It is assembled here, so that it refers to the image's
interpreter and not to this machine's.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Final

from images.errors import ImageBuildError
from reside.build.cache import cache_folder, cached
from reside.build.context import Context, digest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PYTHON: Final = "3.11"  # of Debian 12
VENV: Final = "files/opt/reside/.venv"
_API_GROUPS: Final = ("apps", "core", "meta", "rbac")
"""What the bootstrap uses of pulumi-kubernetes, which has 54 MB of modules in all."""
_LEFT_OUT: Final = "modules of other groups, but not the groups"
"""What `leave_out_unused_kinds` removes: part of the key, as the cache has what an earlier one has left."""
_OF_OPERATORS: Final = ("watchdog",)
"""Packages that only commands of an operator need, such as `reside dev`: they are in no image."""
_GLIBC: Final = "manylinux_2_28"  # Debian 12 has 2.36; wheels for 2.28 run there


class Dependencies:
    """The content of the image `python`."""

    def __init__(self, checkout: Path) -> None:
        self._checkout = checkout
        self._requirements = _export(checkout)
        self._interpreter = os.environ.get("BASE_PYTHON", "/usr/bin/python3")

    def key(self) -> str:
        """Return a hash of the locked requirements, the interpreter's path and the platform."""
        return digest(self._requirements, self._interpreter, PYTHON, _GLIBC, str(compiles()), _LEFT_OUT, *_API_GROUPS)

    def write(self, context: Context, progress: Callable[[str], None]) -> None:
        """Add the virtual environment and an empty home."""
        packages = cached("python", self.key(), lambda folder: self._install(folder, progress))
        context.data(f"{VENV}/pyvenv.cfg", _pyvenv(self._interpreter))
        context.link(f"{VENV}/bin/python", self._interpreter)
        context.link(f"{VENV}/bin/python3", "python")
        context.tree(f"{VENV}/lib/python{PYTHON}/site-packages", packages)
        context.folder("home")

    def _install(self, folder: Path, progress: Callable[[str], None]) -> None:
        progress("installing the locked packages")
        listing = folder / "requirements.txt"
        listing.write_text(self._requirements)
        arguments = ["pip", "install", "--quiet", "--no-deps", "--require-hashes", "--target", str(folder)]
        target = ["--python", sys.executable, "--python-version", PYTHON]
        target += ["--python-platform", f"{platform.machine()}-{_GLIBC}"]
        _uv([*arguments, *target, "--link-mode", "copy", "--requirements", str(listing)], self._checkout)
        listing.unlink()
        shutil.rmtree(folder / "bin", ignore_errors=True)  # scripts that refer to this machine's interpreter
        leave_out_unused_kinds(folder / "pulumi_kubernetes")
        compile_all(folder, f"/opt/reside/.venv/lib/python{PYTHON}/site-packages")


def leave_out_unused_kinds(package: Path) -> None:
    """Remove the modules of kinds that the bootstrap does not declare. Pulumi looks for groups, but not into them."""
    for group in package.iterdir():
        if group.is_dir() and group.name not in _API_GROUPS:
            for inner in group.iterdir():
                if inner.is_dir():
                    shutil.rmtree(inner)
                elif inner.name != "__init__.py":
                    inner.unlink()


def compiles() -> bool:
    """Return whether this interpreter writes byte code that the image's interpreter can read."""
    return f"{sys.version_info.major}.{sys.version_info.minor}" == PYTHON


def compile_all(folder: Path, place: str) -> None:
    """Write byte code beside each module, because the image's user can't write it and would compile at every start.

    Python does not compare it with its source, because nothing in an image changes.

    Args:
        folder: folder of the modules on this machine.
        place: path of that folder in the image, for tracebacks.
    """
    if not compiles():
        return
    command = [sys.executable, "-m", "compileall", "-q", "-j", "2", "--invalidation-mode", "unchecked-hash"]
    finished = subprocess.run(
        [*command, "-s", str(folder), "-p", place, str(folder)], check=False, capture_output=True, text=True
    )
    if finished.returncode != 0:  # a package may contain templates that are not Python and can't be imported
        broken = [line for line in finished.stdout.splitlines() if line.startswith("***")]
        if not broken:
            raise ImageBuildError("python", f"compileall failed:\n{finished.stderr[-2000:]}")


def _export(checkout: Path) -> str:
    arguments = ["export", "--frozen", "--no-dev", "--no-emit-workspace", "--no-header", "--quiet"]
    arguments += [part for package in _OF_OPERATORS for part in ("--no-emit-package", package)]
    return _uv([*arguments, "--format", "requirements-txt"], checkout)


def _uv(arguments: list[str], checkout: Path) -> str:
    """Run uv in the checkout and return its output."""
    binary = shutil.which("uv") or shutil.which("uv", path=str(cache_folder() / "uv/bin"))
    if binary is None:
        raise ImageBuildError("python", "uv was not found: run `make .venv/.synced` in the checkout, or install uv")
    finished = subprocess.run([binary, *arguments], cwd=checkout, check=False, capture_output=True, text=True)
    if finished.returncode != 0:
        raise ImageBuildError("python", f"`uv {arguments[0]}` failed:\n{finished.stderr[-2000:]}")
    return finished.stdout


def _pyvenv(interpreter: str) -> bytes:
    home = interpreter.rpartition("/")[0]
    return f"home = {home}\ninclude-system-site-packages = false\nversion = {PYTHON}\n".encode()
