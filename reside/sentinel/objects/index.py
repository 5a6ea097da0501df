"""An index of keys by the name of what contains them, so that an event about one key does not read all."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class KeyIndex:
    """Which names contain a key, such as which stacks contain an object."""

    def __init__(self) -> None:
        self._keys: dict[str, frozenset[str]] = {}
        self._names: dict[str, set[str]] = {}

    def put(self, name: str, keys: Iterable[str]) -> None:
        """Replace the keys that a name contains; without keys, forget the name."""
        before, after = self._keys.pop(name, frozenset()), frozenset(keys)
        for key in before - after:
            self._names[key].discard(name)
            if not self._names[key]:
                del self._names[key]
        for key in after:
            self._names.setdefault(key, set()).add(name)
        if after:
            self._keys[name] = after

    def names(self, key: str) -> frozenset[str]:
        """Return the names that contain a key."""
        return frozenset(self._names.get(key, ()))

    def keys(self, name: str) -> frozenset[str]:
        """Return the keys that a name contains."""
        return self._keys.get(name, frozenset())

    def add(self, name: str, key: str) -> None:
        """Add one key to a name."""
        self.put(name, self.keys(name) | {key})

    def discard(self, name: str, key: str) -> None:
        """Remove one key from a name, if it contains it."""
        self.put(name, self.keys(name) - {key})
