"""Builds a unit with Go.

Go's own build cache makes a build that was broken off go on where it stopped.
"""

import json
import os
import re
import shutil
import subprocess
from collections import deque
from collections.abc import Callable
from functools import cache
from pathlib import Path

from tools.builder.units import Unit

_FLAGS = ("-buildvcs=false", "-v")
_SETTINGS = ("GOVERSION", "GOOS", "GOARCH")
_TAIL_LINES = 30
_PACKAGE = re.compile(r"^[\w.-]+(/[\w.~-]+)*$")
OLDEST = (1, 26)


class BuildError(Exception):
    """A unit could not be built; the message has the end of what Go said."""


class NoGoError(BuildError):
    """There is no Go, or too old a one."""

    def __init__(self, found: str) -> None:
        wanted = ".".join(map(str, OLDEST))
        super().__init__(
            f"Go {wanted} or newer is needed to build the toolchain; {found}. Install it and put it on PATH."
        )


@cache
def settings() -> str:
    """Return what of the Go installation decides the binaries.

    Raises:
        NoGoError: Go is missing or too old.
    """
    if shutil.which("go") is None:
        raise NoGoError("`go` is not on PATH")
    done = subprocess.run(
        ["go", "env", "-json", *_SETTINGS], capture_output=True, text=True, check=True, env=_environment()
    )
    values: dict[str, str] = json.loads(done.stdout)
    match = re.match(r"go(\d+)\.(\d+)", values["GOVERSION"])
    if match is None or (int(match[1]), int(match[2])) < OLDEST:
        raise NoGoError(f"this is {values['GOVERSION']}")
    return json.dumps(values, sort_keys=True)


def build(unit: Unit, module: Path, target: Path, tell: Callable[[str], None]) -> None:
    """Build all binaries of a unit, and copy its files.

    Args:
        unit: What to build.
        module: The unit's folder.
        target: Where the binaries go.
        tell: Called with a few words about what is being done.

    Raises:
        BuildError: It can't be built.
    """
    compiled = 0
    for name, package in unit.packages.items():
        command = ["go", "build", *_FLAGS, "-ldflags", unit.ldflags, "-o", str(target / name), package]
        said: deque[str] = deque(maxlen=_TAIL_LINES)
        with subprocess.Popen(
            command, cwd=module, env=_environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process:
            assert process.stdout is not None  # noqa: S101 - stdout=PIPE
            for line in process.stdout:
                text = line.strip()
                if _PACKAGE.match(text):
                    compiled += 1
                    tell(f"{name}: {compiled} packages compiled, now {text}")
                else:
                    said.append(text)
                    tell(f"{name}: {text}")
        if process.returncode != 0:
            raise BuildError(f"{unit.name}: `{' '.join(command)}` failed in {module}:\n" + "\n".join(said))
    for name, (source, path) in unit.copies.items():
        shutil.copyfile(module_folder(module, source) / path, target / name)
        (target / name).chmod(0o755)


def module_folder(module: Path, name: str) -> Path:
    """Return where Go keeps a module that this one requires, downloading it if need be."""
    for arguments in (["mod", "download", name], ["list", "-m", "-f", "{{.Dir}}", name]):
        done = subprocess.run(
            ["go", *arguments], cwd=module, env=_environment(), capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise BuildError(f"`go {' '.join(arguments)}` failed in {module}: {done.stderr.strip()}")
    return Path(done.stdout.strip())


def _environment() -> dict[str, str]:
    """Return an environment in which nothing but the module's own files decides what is built."""
    return {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"}
