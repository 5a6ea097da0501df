"""Build a unit with Go. Go has a build cache of its own, so an interrupted build continues where it stopped."""

import json
import os
import re
import shutil
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tools.builder.units import Unit

FLAGS = ("-buildvcs=false", "-gcflags=all=-dwarf=false")
"""For every Go command. Binaries are stripped anyway, and compilation without debug information is a tenth faster."""
_SETTINGS = ("GOVERSION", "GOOS", "GOARCH")
_TAIL_LINES = 30
_LOCAL = re.compile(r"=> (\.\S*)$", re.MULTILINE)
_PACKAGE = re.compile(r"^[\w.-]+(/[\w.~-]+)*$")
OLDEST = (1, 26)


class BuildError(Exception):
    """A unit could not be built; the message contains the end of Go's output."""


class NoGoError(BuildError):
    """Go is missing or too old."""

    def __init__(self, found: str) -> None:
        required = ".".join(map(str, OLDEST))
        super().__init__(
            f"Go {required} or newer is needed to build the toolchain; {found}. Install it and put it on PATH."
        )


@cache
def settings() -> str:
    """Return what the binaries depend on in the Go installation.

    Raises:
        NoGoError: Go is missing or too old.
    """
    if shutil.which("go") is None:
        raise NoGoError("`go` is not on PATH")
    done = subprocess.run(
        ["go", "env", "-json", *_SETTINGS], capture_output=True, text=True, check=True, env=environment()
    )
    values: dict[str, str] = json.loads(done.stdout)
    match = re.match(r"go(\d+)\.(\d+)", values["GOVERSION"])
    if match is None or (int(match[1]), int(match[2])) < OLDEST:
        raise NoGoError(f"this is {values['GOVERSION']}")
    return json.dumps(values, sort_keys=True)


def replacements(module: Path) -> list[Path]:
    """Return the folders outside of a module with which its go.mod replaces other modules."""
    found = [(module / path).resolve() for path in _LOCAL.findall((module / "go.mod").read_text())]
    return [folder for folder in found if not folder.is_relative_to(module.resolve())]


@dataclass(frozen=True)
class Package:
    """A Go package that has to be compiled.

    Args:
        path: its import path.
        version: version of its module; empty for the standard library and for our own packages.
    """

    path: str
    version: str


class Commands:
    """The Go commands of one run. Several threads may run commands; `stop` ends all of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[str]] = set()
        self._stopped = False

    def stop(self) -> None:
        """End all running commands, and prevent new ones."""
        with self._lock:
            self._stopped = True
            for process in self._running:
                process.send_signal(signal.SIGINT)  # Go removes its temporary files

    def to_compile(self, unit: Unit, module: Path, flags: Sequence[str] = ()) -> frozenset[Package]:
        """Download the modules of a unit, and return the packages that are not in Go's cache.

        Raises:
            BuildError: a module can't be downloaded.
        """
        form = "{{if .Stale}}{{.ImportPath}}@{{with .Module}}{{.Version}}{{end}}{{end}}"
        command = ["go", "list", *flags, "-deps", "-f", form, *unit.packages.values()]
        said: list[str] = []
        self._run(unit, command, module, said.append)
        found = (line.partition("@") for line in said if "@" in line and _PACKAGE.match(line.partition("@")[0]))
        return frozenset(Package(path, version) for path, _, version in found)

    def build(
        self, unit: Unit, module: Path, target: Path, report: Callable[[str], None], flags: Sequence[str] = ()
    ) -> None:
        """Build all binaries of a unit, and copy its files.

        Args:
            unit: the unit.
            module: the unit's folder.
            target: the folder for the binaries.
            report: called with the path of each package that is compiled, and with every other line of Go's output.
            flags: more flags for Go.

        Raises:
            BuildError: the unit can't be built.
        """
        command = ["go", "build", *flags, "-v", "-ldflags", unit.ldflags, "-o"]
        if len(unit.packages) == 1:
            ((name, package),) = unit.packages.items()
            self._run(unit, [*command, str(target / name), package], module, report)
        else:  # in one command, so that one binary is linked while packages of another are compiled
            self._run(unit, [*command, f"{target}{os.sep}", *unit.packages.values()], module, report)
            for name, package in unit.packages.items():
                (target / package.rpartition("/")[2]).rename(target / name)
        for name, (source, path) in unit.copies.items():
            shutil.copyfile(module_folder(module, source) / path, target / name)
            (target / name).chmod(0o755)

    def _run(self, unit: Unit, command: list[str], module: Path, report: Callable[[str], None]) -> None:
        """Run a command, and call `report` with each line."""
        said: deque[str] = deque(maxlen=_TAIL_LINES)
        with self._lock:
            if self._stopped:
                raise BuildError(f"{unit.name}: stopped")
            process = subprocess.Popen(
                command,
                cwd=module,
                env={**environment(), **collector()},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            self._running.add(process)
        try:
            with process:
                assert process.stdout is not None  # noqa: S101 - stdout=PIPE
                for line in process.stdout:
                    text = line.strip()
                    if not is_package(text):
                        said.append(text)
                    report(text)
        finally:
            with self._lock:
                self._running.discard(process)
        if process.returncode != 0:
            raise BuildError(f"{unit.name}: `{' '.join(command)}` failed in {module}:\n" + "\n".join(said))


def is_package(line: str) -> bool:
    """Return whether a line of a build's output is the path of a package that is being compiled."""
    return _PACKAGE.match(line) is not None


def module_folder(module: Path, name: str) -> Path:
    """Return the folder of a module that this one requires; download it if it is missing."""
    for arguments in (["mod", "download", name], ["list", "-m", "-f", "{{.Dir}}", name]):
        done = subprocess.run(
            ["go", *arguments], cwd=module, env=environment(), capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise BuildError(f"`go {' '.join(arguments)}` failed in {module}: {done.stderr.strip()}")
    return Path(done.stdout.strip())


def environment() -> dict[str, str]:
    """Return the environment of every Go command: the result depends on the module's files only.

    Commands in this environment share Go's cache of compiled packages.
    """
    return {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off", "GOFLAGS": " ".join(FLAGS)}


def collector() -> dict[str, str]:
    """Return settings with which Go's compilers and linkers collect garbage less often while memory is free.

    With the default settings, garbage collection takes a quarter of a build's processor time.
    """
    return {"GOGC": "400", "GOMEMLIMIT": str(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4)}
