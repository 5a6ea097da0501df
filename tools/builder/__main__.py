"""Command line of the toolchain's build: `python tools/build.py [--all | --only GROUP] [--print-bin]`."""

import argparse
import os
import sys
from pathlib import Path

from tools.builder import cache, debian, fetch, onpath
from tools.builder.golang import BuildError
from tools.builder.run import Run
from tools.builder.units import UNITS

CHECKOUT = Path(__file__).resolve().parents[2]
LINK = CHECKOUT / ".tools"


def main(arguments: list[str] | None = None) -> int:
    """Build what is missing; return the exit code."""
    options = _parse(arguments)
    root = cache.default_root()
    try:
        run = Run(CHECKOUT, root, fetch.Fetcher(fetch.setting()))
        with cache.locked(root, lambda: print("Another build is running: waiting for it.", file=sys.stderr)):
            cache.sweep_drafts(root)
            packages = debian.missing(tests=options.all) if options.only in (None, debian.NAME) else []
            root_user = os.geteuid() == 0
            units = [
                unit for unit in UNITS if options.only == unit.name or (options.only is None and not unit.optional)
            ]
            run.bring(list(UNITS) if options.all else units, packages if root_user else [])
            folder = _link(run, root)
            if packages and not root_user:
                command = debian.install_command(packages)
                raise BuildError(f"Only root can install Debian packages: run `{command}`")  # noqa: TRY301
    except (BuildError, FileExistsError, fetch.FetchError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped; the next run continues from here.", file=sys.stderr)
        return 130
    if any(seconds for _, _, seconds in run.progress.times):
        print(run.progress.table(), file=sys.stderr)
    if options.print_bin:
        print(folder / "bin")
    return 0


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tools/build.py", description=__doc__)
    groups = [unit.name for unit in UNITS]
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--all", action="store_true", help="also what few targets need: Traefik, cert-manager, a browser"
    )
    which.add_argument(
        "--only", choices=[*groups, debian.NAME], metavar="GROUP", help=f"one of {', '.join(groups)}, debian"
    )
    parser.add_argument("--print-bin", action="store_true", help="print the folder of the binaries")
    return parser.parse_args(arguments)


def _link(run: Run, root: Path) -> Path:
    """Point `.tools` of the checkout to the set of all binaries that exist."""
    binaries: dict[str, Path] = {}
    used: list[Path] = []
    for unit in UNITS:
        found = onpath.usable(unit, root)
        rest = [name for name in unit.binaries if name not in found]
        binaries.update(found)
        entry = run.found(unit, rest) if rest else None
        if entry is not None:
            binaries.update({name: entry.bin / name for name in rest})
            used.append(entry.folder)
    folder = cache.write_set(root, binaries)
    cache.point(LINK, folder)
    old = cache.unused(root, [*used, folder])
    if old:
        print(
            f"Not used by this checkout; if no other checkout uses them, remove them: rm -r {' '.join(map(str, old))}",
            file=sys.stderr,
        )
    return folder


if __name__ == "__main__":
    sys.exit(main())
