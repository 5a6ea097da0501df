"""Estimate the remaining time of a run from the packages that it has to compile."""

import os
import threading
from collections.abc import Collection, Iterable

from tools.builder.golang import Package
from tools.builder.units import Unit

_ASSUMED_SECONDS = 30.0
_MINUTE = 60.0


class Estimate:
    """The packages that a run has to compile, and those that are compiled. It is safe for several threads.

    The cost of a package is the average of its unit. The speed of this machine is computed from the costs so far and
    the time that they took; at first, the machine is assumed to be idle.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._each: dict[str, float] = {}
        self._left: dict[str, float] = {}
        self._packages: dict[str, set[str]] = {}
        self._counted: set[Package] = set()
        self._done = 0.0

    def begin(self, units: Iterable[Unit]) -> None:
        """Note which units are built; until their packages are known, the unit's own `cost` is used."""
        with self._lock:
            for unit in units:
                self._each[unit.name] = unit.cost / unit.compiled
                self._left[unit.name] = unit.cost

    def expect(self, unit: str, packages: Collection[Package]) -> None:
        """Note the packages that a unit has to compile; a package of several units counts for the first one."""
        with self._lock:
            own = set(packages) - self._counted
            self._counted |= own
            self._packages[unit] = {package.path for package in own}
            self._left[unit] = len(own) * self._each[unit]

    def compiled(self, unit: str, path: str) -> None:
        """Note that a package of a unit is compiled."""
        with self._lock:
            if path in self._packages.get(unit, ()):
                self._packages[unit].remove(path)
                self._left[unit] -= self._each[unit]
                self._done += self._each[unit]

    def finished(self, unit: str) -> None:
        """Note that a unit is built."""
        with self._lock:
            self._done += self._left.pop(unit, 0.0)
            self._packages.pop(unit, None)

    def dropped(self, unit: str) -> None:
        """Note that a unit need not be built."""
        with self._lock:
            self._left.pop(unit, None)

    def packages_left(self, unit: str) -> int:
        """Return how many packages of a unit are not compiled yet."""
        with self._lock:
            return len(self._packages.get(unit, ()))

    def seconds_left(self, elapsed: float) -> float:
        """Return the remaining time in seconds.

        Args:
            elapsed: seconds since the run began.
        """
        assumed = (os.cpu_count() or 1) * _ASSUMED_SECONDS
        with self._lock:
            speed = (self._done + assumed) / (elapsed + _ASSUMED_SECONDS)
            return sum(self._left.values()) / speed


def words(seconds: float) -> str:
    """Return the approximate remaining time in words."""
    minutes = round(seconds / _MINUTE)
    return f"about {minutes} min left" if minutes else "less than a minute left"
