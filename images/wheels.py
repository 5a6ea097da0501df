"""The dependencies of the Python programs, as locked in uv.lock, in a virtual environment made by hand.

Installed outside with the machine's own uv and its cache, then copied in. A virtual environment is a link to an
interpreter, a pyvenv.cfg and a folder of packages; made so, it fits the image and not this machine.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Final

from images.cache import cached
from images.errors import ImageBuildError
from reside.build.context import Context, digest
from reside.build.daemon import cache_folder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PYTHON: Final = "3.11"  # of Debian 12
VENV: Final = "files/opt/reside/.venv"
_GLIBC: Final = "manylinux_2_28"  # Debian 12 has 2.36; wheels for 2.28 run there


class Dependencies:
    """The content of the image ``python``."""

    def __init__(self, checkout: Path) -> None:
        self._checkout = checkout
        self._requirements = _export(checkout)
        self._interpreter = os.environ.get("BASE_PYTHON", "/usr/bin/python3")

    def key(self) -> str:
        """The locked requirements and the interpreter's place."""
        return digest(self._requirements, self._interpreter, PYTHON, _GLIBC, str(compiles()))

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
        wanted = ["--python", sys.executable, "--python-version", PYTHON]
        wanted += ["--python-platform", f"{platform.machine()}-{_GLIBC}"]
        _uv([*arguments, *wanted, "--link-mode", "copy", "--requirements", str(listing)], self._checkout)
        listing.unlink()
        shutil.rmtree(folder / "bin", ignore_errors=True)  # scripts that name this machine's interpreter
        compile_all(folder, f"/opt/reside/.venv/lib/python{PYTHON}/site-packages")


def compiles() -> bool:
    """Whether this interpreter writes the byte code of the image's."""
    return f"{sys.version_info.major}.{sys.version_info.minor}" == PYTHON


def compile_all(folder: Path, place: str) -> None:
    """Byte code beside each module: the image's user can't write it, and would compile at every start.

    It is never checked against its source, since nothing in an image changes.
    """
    if not compiles():
        return
    command = [sys.executable, "-m", "compileall", "-q", "-j", "2", "--invalidation-mode", "unchecked-hash"]
    finished = subprocess.run(
        [*command, "-s", str(folder), "-p", place, str(folder)], check=False, capture_output=True, text=True
    )
    if finished.returncode != 0:  # a package may carry templates that are no Python; they were not importable before
        broken = [line for line in finished.stdout.splitlines() if line.startswith("***")]
        if not broken:
            raise ImageBuildError("python", f"compileall failed:\n{finished.stderr[-2000:]}")


def _export(checkout: Path) -> str:
    arguments = ["export", "--frozen", "--no-dev", "--no-emit-project", "--no-header", "--quiet"]
    return _uv([*arguments, "--format", "requirements-txt"], checkout)


def _uv(arguments: list[str], checkout: Path) -> str:
    """Run uv in the checkout; its output."""
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
