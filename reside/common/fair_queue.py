"""A queue in which groups take turns: a group with many keys delays each other group by one key at a time."""

from __future__ import annotations


class FairQueue:
    """Keys in the order in which they are taken. Each call takes constant time."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[str, None]] = {}
        """Group → its keys, in the order in which they were added. The first group has the next turn."""
        self._group_of: dict[str, str] = {}

    def __contains__(self, key: object) -> bool:
        """Return whether the key is queued."""
        return key in self._group_of

    def __bool__(self) -> bool:
        """Return whether any key is queued."""
        return bool(self._group_of)

    def add(self, key: str, group: str = "") -> None:
        """Add a key behind those of its group; a key that is queued already keeps its place."""
        if key not in self._group_of:
            self._group_of[key] = group
            self._groups.setdefault(group, {})[key] = None

    def take(self) -> str:
        """Remove the key that is next, and return it; its group waits for the turns of all others.

        Raises:
            StopIteration: the queue is empty.
        """
        group, keys = next(iter(self._groups.items()))
        key = next(iter(keys))
        self.discard(key)
        if keys:
            self._groups[group] = self._groups.pop(group)
        return key

    def discard(self, key: str) -> None:
        """Remove a key, if it is queued."""
        group = self._group_of.pop(key, None)
        if group is not None:
            keys = self._groups[group]
            del keys[key]
            if not keys:
                del self._groups[group]
