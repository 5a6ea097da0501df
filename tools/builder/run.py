"""One run of the build: build what is missing, two units at once, while modules of other units are downloaded."""

from collections.abc import Sequence
from pathlib import Path

from tools.builder import cache, debian, golang, onpath, patches
from tools.builder.estimate import Estimate, words
from tools.builder.progress import Progress
from tools.builder.schedule import Job, run_jobs
from tools.builder.units import Unit

_LANES = {"apt": 1, "downloads": 1, "builds": 2}
"""Number of jobs of each kind that run at once.

With two builds, one links or waits for a large package while the other one compiles small packages. More builds would
need too much memory.
"""


class Run:
    """Builds units into the cache.

    Args:
        checkout: folder of the checkout.
        root: folder of the cache.
    """

    def __init__(self, checkout: Path, root: Path) -> None:
        self._checkout = checkout
        self._root = root
        self._commands = golang.Commands()
        self._estimate = Estimate()
        self.progress = Progress(lambda elapsed: words(self._estimate.seconds_left(elapsed)))

    def entry(self, unit: Unit) -> cache.Entry:
        """Return a unit's entry in the cache."""
        module = self._checkout / unit.module
        others = [cache.folder_hash(folder) for folder in golang.replacements(module)]
        decide = (golang.settings(), *golang.FLAGS, unit.ldflags, *unit.packages.values(), *others)
        return cache.Entry(self._root / f"{unit.name}-{cache.folder_hash(module, *decide)}")

    def bring(self, units: Sequence[Unit], packages: Sequence[str]) -> None:
        """Build units unless their entry in the cache, or PATH, has all of their binaries.

        Args:
            units: the required units, in the order of building.
            packages: Debian packages to install at the same time.

        Raises:
            BuildError: a unit can't be built, or a package can't be installed.
        """
        missing = [(unit, fault) for unit in units if (fault := self._fault(unit))]
        jobs = [Job(debian.NAME, lambda: self._install(packages), "apt")] if packages else []
        for unit, fault in missing:
            jobs += self._jobs(unit, fault)
        if not jobs:
            return
        self._estimate.begin(unit for unit, _ in missing)
        with self.progress.shown():
            run_jobs(jobs, _LANES, self._commands.stop)

    def _fault(self, unit: Unit) -> str | None:
        """Return why a unit must be built; None if it need not."""
        found = onpath.usable(unit, self._root)
        needed = [name for name in unit.binaries if name not in found]
        fault = self.entry(unit).fault(needed) if needed else None
        if fault is None:
            self.progress.skip(unit.name, "in the cache" if needed else "on PATH")
        return fault

    def _jobs(self, unit: Unit, fault: str) -> list[Job]:
        modules = f"modules of {unit.name}"
        return [
            Job(modules, lambda: self._download(unit), "downloads"),
            Job(unit.name, lambda: self._build(unit, fault), "builds", frozenset({modules, *unit.after})),
        ]

    def _install(self, packages: Sequence[str]) -> None:
        with self.progress.item(debian.NAME, f"installing {' '.join(packages)}"):
            debian.install(packages, lambda words: self.progress.describe(debian.NAME, words))

    def _download(self, unit: Unit) -> None:
        with self.progress.doing(unit.name, "downloading its modules"):
            module = self._checkout / unit.module
            patches.prepare(unit, module, self._root)
            packages = self._commands.to_compile(unit, module, patches.flags(unit, self._root))
        self._estimate.expect(unit.name, packages)

    def _build(self, unit: Unit, fault: str) -> None:
        def report(line: str) -> None:
            if golang.is_package(line):
                self._estimate.compiled(unit.name, line)
                line = f"{self._estimate.packages_left(unit.name)} packages left, now {line}"
            self.progress.describe(unit.name, line)

        with self.progress.item(unit.name, f"building ({fault})"):
            self.entry(unit).write(
                lambda target: self._commands.build(
                    unit, self._checkout / unit.module, target, report, patches.flags(unit, self._root)
                )
            )
        self._estimate.finished(unit.name)
