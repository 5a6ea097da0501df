"""What has changed in a value since it was last asked for, so that readers of a large value need not read all of it."""

from collections.abc import Callable, Iterable

from reside.jazz.values.content import Content
from reside.jazz.wire.session import Transaction


class Tracker:
    """The keys of a map that were assigned or removed since the last look, or the texts that were inserted into a list.

    See `CoMap.track` and `CoList.track`.

    Args:
        content: the valid content of the value.
        everything: brings the content up to date, and returns all keys or texts.
        touched: returns those that a transaction has changed.
    """

    def __init__(
        self,
        content: Content,
        everything: Callable[[], Iterable[str]],
        touched: Callable[[Transaction], Iterable[str]],
    ) -> None:
        content.keep()  # `take` reads the changes of transactions that it has seen before
        self._content = content
        self._everything = everything
        self._touched = touched
        self._seen: list[Transaction] = []
        self._count = 0
        self._losers: frozenset[Transaction] = frozenset()

    def take(self) -> set[str]:
        """Return what has changed since the last call.

        The first call returns everything. So does a call after a change that made earlier content valid or invalid,
        with what there was before.
        """
        self._content.refresh()
        valid, losers = self._content.valid, self._content.losers
        if valid is self._seen and losers == self._losers and self._content.source() is None:
            found = {text for index in range(self._count, len(valid)) for text in self._touched(valid[index])}
        else:
            before = {text for item in self._seen[: self._count] for text in self._touched(item)}
            found = before.union(self._everything())
        self._seen, self._count, self._losers = valid, len(valid), losers
        return found


def assigned_keys(item: Transaction) -> list[str]:
    """Return the keys of a map that a transaction assigns or removes."""
    changes = (change for change in item.changes or () if isinstance(change, dict))
    return [key for change in changes if isinstance(key := change.get("key"), str)]


def inserted_texts(item: Transaction) -> list[str]:
    """Return the texts that a transaction inserts into a list."""
    changes = (change for change in item.changes or () if isinstance(change, dict))
    return [value for change in changes if isinstance(value := change.get("value"), str)]
