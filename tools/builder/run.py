"""One run of the build: fetch or build what is missing, two units at once, while modules of others are downloaded."""

from collections.abc import Callable, Sequence
from pathlib import Path

from tools.builder import cache, debian, golang, onpath, patches
from tools.builder.downloads import download_of
from tools.builder.estimate import Estimate, words
from tools.builder.fetch import Fetcher, FetchError
from tools.builder.progress import Progress
from tools.builder.schedule import Job, run_jobs
from tools.builder.units import Unit

_LANES = {"apt": 1, "fetches": 2, "downloads": 1, "builds": 2}
"""Number of jobs of each kind that run at once.

With two builds, one links or waits for a large package while the other one compiles small packages. More builds would
need too much memory.
"""


class Run:
    """Brings units into the cache.

    Args:
        checkout: folder of the checkout.
        root: folder of the cache.
        fetcher: fetches the archives of vendors.
    """

    def __init__(self, checkout: Path, root: Path, fetcher: Fetcher | None = None) -> None:
        self._checkout = checkout
        self._root = root
        self._fetcher = fetcher or Fetcher("0")
        self._commands = golang.Commands()
        self._estimate = Estimate()
        self.progress = Progress(lambda elapsed: words(self._estimate.seconds_left(elapsed)))

    def entry(self, unit: Unit) -> cache.Entry:
        """Return the entry in the cache of a unit that is built."""
        module = self._checkout / unit.module
        others = [cache.folder_hash(folder) for folder in golang.replacements(module)]
        decide = (golang.settings(), *golang.FLAGS, unit.ldflags, *unit.packages.values(), *others)
        return cache.Entry(self._root / f"{unit.name}-{cache.folder_hash(module, *decide)}")

    def found(self, unit: Unit, binaries: Sequence[str]) -> cache.Entry | None:
        """Return the entry that has these binaries of a unit, built or fetched."""
        download = download_of(unit.name)
        entries = [self.entry(unit), *([self._fetched(unit, download.key)] if download else [])]
        return next((entry for entry in entries if entry.fault(binaries) is None), None)

    def _fetched(self, unit: Unit, key: str) -> cache.Entry:
        return cache.Entry(self._root / f"{unit.name}-{key}")

    def bring(self, units: Sequence[Unit], packages: Sequence[str]) -> None:
        """Fetch or build units unless their entry in the cache, or PATH, has all of their binaries.

        A unit that can't be fetched is built.

        Args:
            units: the required units, in the order of building.
            packages: Debian packages to install at the same time.

        Raises:
            BuildError: a unit can't be built, or a package can't be installed.
        """
        missing = [(unit, fault) for unit in units if (fault := self._fault(unit))]
        jobs = [Job(debian.NAME, lambda: self._install(packages), "apt")] if packages else []
        fetched = self._fetchable([unit for unit, _ in missing])
        for unit, fault in missing:
            jobs += self._jobs(unit, fault, fetch=unit.name in fetched)
        if not jobs:
            return
        self._estimate.begin(unit for unit, _ in missing)
        with self.progress.shown():
            run_jobs(jobs, _LANES, self._stop)

    def _stop(self) -> None:
        self._fetcher.stop()
        self._commands.stop()

    def _fetchable(self, units: Sequence[Unit]) -> set[str]:
        """Return the units to fetch; say in one line for each server why the others are not."""
        downloads = {unit.name: found for unit in units if (found := download_of(unit.name))}
        answers = self._fetcher.reachable(downloads)
        for why in dict.fromkeys(why for why in answers.values() if why):
            built = ", ".join(name for name, answer in answers.items() if answer == why)
            self.progress.say(f"{built}: not fetched ({why}): built from source")
        return {name for name, why in answers.items() if why is None}

    def _fault(self, unit: Unit) -> str | None:
        """Return why a unit must be built; None if it need not."""
        found = onpath.usable(unit, self._root)
        needed = [name for name in unit.binaries if name not in found]
        if needed and self.found(unit, needed) is None:
            return self.entry(unit).fault(needed)
        self.progress.skip(unit.name, "in the cache" if needed else "on PATH")
        return None

    def _jobs(self, unit: Unit, fault: str, *, fetch: bool) -> list[Job]:
        modules, archive = f"modules of {unit.name}", f"archive of {unit.name}"
        fetched: set[str] = set()

        def unless_fetched(work: Callable[[], None]) -> Callable[[], None]:
            return lambda: None if unit.name in fetched else work()

        download = unless_fetched(lambda: self._download(unit))
        build = unless_fetched(lambda: self._build(unit, fault))
        jobs = [
            Job(modules, download, "downloads", frozenset({archive})),
            Job(unit.name, build, "builds", frozenset({modules, *unit.after})),
        ]
        return [Job(archive, lambda: self._fetch(unit, fetched), "fetches"), *jobs] if fetch else jobs

    def _fetch(self, unit: Unit, fetched: set[str]) -> None:
        """Fetch a unit and note it; or say why it is built instead."""
        download = download_of(unit.name)
        assert download is not None  # noqa: S101 - `_fetchable` returned it

        def fill(target: Path) -> None:
            self._fetcher.fetch(
                download, target, self._root, unit.binaries, lambda line: self.progress.describe(unit.name, line)
            )

        with self.progress.item(unit.name, f"fetching {self._fetcher.address(download)}") as outcome:
            try:
                self._fetched(unit, download.key).write(fill)
            except FetchError as error:
                outcome.result, outcome.reason = "not fetched", f" ({error}): it is built from source"
                return
            outcome.result = "fetched"
        fetched.add(unit.name)
        self._estimate.dropped(unit.name)

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
