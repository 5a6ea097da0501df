"""An index of keys by the name of what contains them, so that an event about one key does not read all."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class KeyIndex:
    """Which names contain a key, such as which stacks contain an object.

    Args:
        on_free: called with a key that no name contains any more.
    """

    def __init__(self, on_free: Callable[[str], None] = lambda _: None) -> None:
        self._on_free = on_free
        self._keys: dict[str, set[str]] = {}
        self._names: dict[str, tuple[str, ...]] = {}
        """Key → its names, in the order in which they got it. Most have one; a tuple takes a quarter of a dict."""

    def put(self, name: str, keys: Iterable[str]) -> None:
        """Replace the keys that a name contains; without keys, forget the name."""
        before, after = self._keys.get(name, set()), set(keys)
        for key in before - after:
            self.discard(name, key)
        for key in after - before:
            self.add(name, key)

    def names(self, key: str) -> frozenset[str]:
        """Return the names that contain a key."""
        return frozenset(self._names.get(key, ()))

    def first(self, key: str) -> str | None:
        """Return the name that has contained a key for the longest time; None if no name contains it."""
        return self._names.get(key, (None,))[0]

    def keys(self, name: str) -> frozenset[str]:
        """Return the keys that a name contains."""
        return frozenset(self._keys.get(name, ()))

    def add(self, name: str, key: str) -> None:
        """Add one key to a name."""
        self._keys.setdefault(name, set()).add(key)
        names = self._names.get(key, ())
        if name not in names:
            self._names[key] = (*names, name)

    def discard(self, name: str, key: str) -> None:
        """Remove one key from a name, if it contains it."""
        keys = self._keys.get(name, set())
        if key not in keys:
            return
        keys.discard(key)
        if not keys:
            del self._keys[name]
        names = tuple(each for each in self._names[key] if each != name)
        if names:
            self._names[key] = names
        else:
            del self._names[key]
            self._on_free(key)
