"""Full collections of garbage that do not look at everything again, because the event loop stands still meanwhile.

Python looks at all objects that can be part of a cycle in a full collection: with a thousand stacks, that takes a tenth
of a second for a few dozen objects that it frees. What survives one is therefore frozen (`gc.freeze`), so the next one
looks only at what was made since. Full collections come more often than by default, so that this is little.

References are counted in frozen objects, too: what is frozen and becomes unreachable without a cycle is freed as
always. Cycles among them stay, so all are looked at again when the process has grown much, and after hours. The frozen
objects are not counted, because that visits each.
"""

from __future__ import annotations

import gc
import resource
import time
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_GROWTH: Final = 3
"""By how much the peak of the process's memory may grow until all are looked at again."""
_AFTER_S: Final = 6 * 3600.0
"""Seconds after which all are looked at again."""
_YOUNGER: Final = 3
"""Collections of younger objects before a full one; 10 is Python's default."""


def _peak() -> int:
    """Return the largest amount of memory that the process has used: KiB, or bytes on macOS."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


class Freezer:
    """Freezes what survives a full collection.

    Args:
        now: the clock, in seconds.
        peak: returns the largest amount of memory that the process has used, in any unit.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic, peak: Callable[[], float] = _peak) -> None:
        self._now = now
        self._peak = peak
        self._is_whole = True
        """Whether the next full collection looks at all objects."""
        self._before = peak()
        self._since = now()

    def install(self) -> Callable[[], None]:
        """Freeze what exists, and what survives each full collection; return a function that ends that."""
        thresholds = gc.get_threshold()
        gc.set_threshold(*thresholds[:2], _YOUNGER)
        gc.callbacks.append(self._collected)
        self._freeze()

        def end() -> None:
            gc.callbacks.remove(self._collected)
            gc.unfreeze()
            gc.set_threshold(*thresholds)

        return end

    def _collected(self, phase: str, information: dict[str, Any]) -> None:
        if phase != "stop" or information["generation"] < 2:  # noqa: PLR2004 - the oldest generation
            return
        self._freeze()
        if self._peak() > _GROWTH * self._before or self._now() > self._since + _AFTER_S:
            gc.unfreeze()
            self._is_whole = True

    def _freeze(self) -> None:
        gc.freeze()
        if self._is_whole:
            self._is_whole, self._before, self._since = False, self._peak(), self._now()
