"""Command line of the toolchain's build: `python tools/build.py [--only GROUP] [--print-bin]`."""

import argparse
import os
import sys
from pathlib import Path

from tools.builder import cache, debian, golang, onpath
from tools.builder.golang import BuildError
from tools.builder.progress import Progress
from tools.builder.units import UNITS, Unit

CHECKOUT = Path(__file__).resolve().parents[2]
LINK = CHECKOUT / ".tools"


def main(arguments: list[str] | None = None) -> int:
    """Build what is missing; return the exit code."""
    options = _parse(arguments)
    root = cache.default_root()
    progress = Progress()
    wanted = [unit for unit in UNITS if options.only in (None, unit.name)]
    try:
        with cache.locked(root, lambda: print("Another build is running: waiting for it.", file=sys.stderr)):
            cache.sweep_drafts(root)
            packages = debian.missing() if options.only in (None, debian.NAME) else []
            if packages and os.geteuid() == 0:
                with progress.item(debian.NAME, f"installing {' '.join(packages)}"):
                    debian.install(packages, progress.tell)
                packages = []
            for unit in wanted:
                _bring(unit, root, progress)
            folder = _link(root)
            _refuse(packages)
    except (BuildError, FileExistsError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped; the next run goes on from here.", file=sys.stderr)
        return 130
    if any(seconds for _, _, seconds in progress.times):
        print(progress.table(), file=sys.stderr)
    if options.print_bin:
        print(folder / "bin")
    return 0


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tools/build.py", description=__doc__)
    groups = [unit.name for unit in UNITS]
    parser.add_argument(
        "--only", choices=[*groups, debian.NAME], metavar="GROUP", help=f"one of {', '.join(groups)}, debian"
    )
    parser.add_argument("--print-bin", action="store_true", help="print the folder that the binaries are in")
    return parser.parse_args(arguments)


def _entry(unit: Unit, root: Path) -> cache.Entry:
    digest = cache.folder_hash(CHECKOUT / unit.module, golang.settings(), unit.ldflags, *unit.packages.values())
    return cache.Entry(root / f"{unit.name}-{digest}")


def _bring(unit: Unit, root: Path, progress: Progress) -> None:
    """Build a unit unless its entry in the cache, or PATH, has all of its binaries."""
    found = onpath.usable(unit, root)
    needed = [name for name in unit.binaries if name not in found]
    if not needed:
        progress.skip(unit.name, "on PATH")
        return
    entry = _entry(unit, root)
    fault = entry.fault(needed)
    if fault is None:
        progress.skip(unit.name, "in the cache")
        return
    with progress.item(unit.name, f"building ({fault})"):
        entry.write(lambda target: golang.build(unit, CHECKOUT / unit.module, target, progress.tell))


def _refuse(packages: list[str]) -> None:
    """End with an error if packages are still missing, after everything else was built."""
    if packages:
        raise BuildError(f"Only root can install Debian packages: run `{debian.install_command(packages)}`")


def _link(root: Path) -> Path:
    """Point `.tools` of the checkout to the set of all binaries that are there."""
    binaries: dict[str, Path] = {}
    used: list[Path] = []
    for unit in UNITS:
        found = onpath.usable(unit, root)
        rest = [name for name in unit.binaries if name not in found]
        binaries.update(found)
        entry = _entry(unit, root) if rest else None
        if entry is not None and entry.fault(rest) is None:
            binaries.update({name: entry.bin / name for name in rest})
            used.append(entry.folder)
    folder = cache.write_set(root, binaries)
    cache.point(LINK, folder)
    old = cache.unused(root, [*used, folder])
    if old:
        print(
            f"Not used by this checkout, so maybe free to be removed: rm -r {' '.join(map(str, old))}", file=sys.stderr
        )
    return folder


if __name__ == "__main__":
    sys.exit(main())
