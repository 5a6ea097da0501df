"""Which keys of a map have changed since they were last asked for, so that readers of large maps need not read all."""

from collections.abc import Callable, Mapping
from itertools import islice

from reside.jazz.values.content import Content
from reside.jazz.wire.session import Transaction


class KeyTracker:
    """The keys of a map that were assigned or removed since they were last taken; see `CoMap.track`.

    Args:
        content: the valid content of the map.
        entries: brings the content up to date and returns the assignments of each key.
    """

    def __init__(self, content: Content, entries: Callable[[], Mapping[str, object]]) -> None:
        self._content = content
        self._entries = entries
        self._seen: list[Transaction] = []
        self._count = 0
        self._losers: frozenset[Transaction] = frozenset()

    def take(self) -> set[str]:
        """Return the keys that have changed since the last call.

        The first call returns all keys. So does a call after a change that made earlier content valid or invalid, with
        the keys that there were before.
        """
        entries = self._entries()
        valid, losers = self._content.valid, self._content.losers
        if valid is self._seen and losers == self._losers and self._content.source() is None:
            found = {key for item in islice(valid, self._count, None) for key in _keys(item)}
        else:
            found = set(entries) | {key for item in self._seen[: self._count] for key in _keys(item)}
        self._seen, self._count, self._losers = valid, len(valid), losers
        return found


def _keys(item: Transaction) -> list[str]:
    changes = (change for change in item.changes or () if isinstance(change, dict))
    return [key for change in changes if isinstance(key := change.get("key"), str)]
