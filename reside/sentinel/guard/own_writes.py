"""Which states of live objects the engine wrote, so that they are not verified by a second request. Plain state.

The engine tells the resource version of each object that it wrote. The watch shows the same version before or after
that. From both follows the live state that agrees with the desired one; any other state is looked at as usual.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from reside.sentinel.objects.identity import metadata

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from reside.model.stacks import K8sObject

_STATES: Final = 16
"""Number of states that are kept of one object during an operation; a controller may write many."""


@dataclass
class OwnWrites:
    """The writes of operations that run or have just ended, by `Kind/name`."""

    _shown: dict[str, dict[str, K8sObject]] = field(default_factory=dict)
    """What the watches have shown of the objects of running operations, by version."""
    _expected: dict[str, str] = field(default_factory=dict)
    """Versions that the engine wrote and the watches have not shown."""

    def begin(self, keys: Iterable[str]) -> None:
        """Keep what the watches show of these objects until `end`."""
        for key in keys:
            self._shown[key] = {}

    def end(
        self, keys: Iterable[str], written: Mapping[str, str], live: Mapping[str, K8sObject]
    ) -> dict[str, K8sObject]:
        """Return the states that the engine wrote, as far as the watches have shown them; expect the others.

        Args:
            keys: the objects that were passed to `begin`.
            written: the versions that the engine wrote, by `Kind/name`.
            live: the live objects now. An apply that changes nothing writes no version, so no event shows it.
        """
        found = {}
        for key in keys:
            shown, version = self._shown.pop(key, {}), written.get(key)
            if version is None:
                continue
            if (now := live.get(key)) is not None:
                shown[version_of(now)] = now
            if version in shown:
                found[key] = shown[version]
            elif all(_is_older(seen, version) for seen in shown):
                self._expected[key] = version
        return found

    def note(self, key: str, live: K8sObject | None) -> bool:
        """Note what a watch shows; return whether it is a state that the engine wrote."""
        if (shown := self._shown.get(key)) is not None:
            if live is not None:
                shown[version_of(live)] = live
                if len(shown) > _STATES:
                    del shown[next(iter(shown))]
            return False
        expected = self._expected.get(key)
        if expected is None or (live is not None and _is_older(version_of(live), expected)):
            return False
        del self._expected[key]
        return live is not None and version_of(live) == expected

    def awaits(self, key: str) -> bool:
        """Return whether the watches are behind the engine."""
        return key in self._expected


def version_of(live: K8sObject) -> str:
    """Return the resource version of a live object; empty if it has none."""
    return str(metadata(live).get("resourceVersion") or "")


def _is_older(version: str, other: str) -> bool:
    """Return whether a resource version is older than another one; versions of one kind are comparable integers."""
    return not version or (version.isdecimal() and other.isdecimal() and int(version) < int(other))
