"""Changes of others that were changed back lately, for the reports. Plain state.

A sentence has neither values, which not every reader of a report may read, nor a number or a time, since each change of
a report is stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reside.sentinel.objects.managed_fields import Managed, shortened, shown

if TYPE_CHECKING:
    from collections.abc import Iterable

KEPT_S: Final = 3600.0
"""Seconds after which a change is forgotten; events of Kubernetes are kept as long."""
_MOST_FIELDS: Final = 8
"""Number of fields of one object that are kept."""
_MOST_OBJECTS: Final = 1000
"""Number of objects of which changes are kept."""


class Reverts:
    """The reverted changes of each object, by `Kind/name`."""

    def __init__(self) -> None:
        self._found: dict[str, dict[Managed, float]] = {}

    def note(self, key: str, culprits: Iterable[Managed], now: float) -> bool:
        """Note changes that were changed back; return whether one of them is new."""
        before = self.texts(key)
        found = self._found.pop(key, {})
        for culprit in culprits:
            found.pop(culprit, None)
            found[culprit] = now
        while len(found) > _MOST_FIELDS:
            del found[next(iter(found))]
        if found:
            self._found[key] = found
        if len(self._found) > _MOST_OBJECTS:
            del self._found[next(iter(self._found))]
        return self.texts(key) != before

    def expire(self, key: str, now: float) -> bool:
        """Forget what is too old; return whether anything was."""
        found = self._found.get(key, {})
        left = {culprit: at for culprit, at in found.items() if now - at < KEPT_S}
        if left:
            self._found[key] = left
        else:
            self._found.pop(key, None)
        return len(left) < len(found)

    def forget(self, key: str) -> None:
        """Forget an object that is in no stack any more."""
        self._found.pop(key, None)

    def next_end(self, key: str) -> float | None:
        """Return when the first change of an object is forgotten; None if there is none."""
        return min((at + KEPT_S for at in self._found.get(key, {}).values()), default=None)

    def texts(self, key: str) -> tuple[str, ...]:
        """Return one sentence for each changed field of an object."""
        return tuple(
            sorted(f"{shortened(each.manager)} changed {shown(each.path)}" for each in self._found.get(key, {}))
        )
