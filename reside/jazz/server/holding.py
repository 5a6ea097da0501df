"""Content of one connection that waits for values that it depends on: bounded in number, size and time."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from reside.jazz.memory.covalue import Batch

MAX_PARTS: Final = 256
MAX_CHARACTERS: Final = 16 * 1024 * 1024
MAX_UNKNOWN: Final = 1024


@dataclass(slots=True)
class Part:
    """Part of a content message: a whole message whose header waits, or one session of it.

    Attributes:
        key: what has to stay in order: a value, or a session of it.
        co_id: the value.
        header: the header as received; None if the message has none.
        batches: the batches.
        unknown: the values that it depends on and that are not here.
        deadline: when it is dropped.
    """

    key: str
    co_id: str
    header: Any
    batches: list[Batch]
    unknown: set[str]
    deadline: float = 0.0

    @property
    def size(self) -> int:
        """About how many characters it takes."""
        return sum(_sizes(self.batches))


class Holding:
    """The waiting parts of one connection, in the order of arrival."""

    def __init__(self) -> None:
        self._parts: list[Part] = []
        self._size = 0

    def __len__(self) -> int:
        return len(self._parts)

    def waits(self, key: str) -> set[str]:
        """Return what the parts with a key wait for: what comes after them has to wait, too."""
        return {co_id for part in self._parts if part.key == key for co_id in part.unknown}

    def awaited(self) -> set[str]:
        """Return all values that parts wait for."""
        return set[str]().union(*(part.unknown for part in self._parts))

    def add(self, part: Part) -> bool:
        """Hold a part; return False if too much waits already."""
        awaited = self.awaited() | part.unknown
        if len(self._parts) >= MAX_PARTS or self._size + part.size > MAX_CHARACTERS or len(awaited) > MAX_UNKNOWN:
            return False
        self._parts.append(part)
        self._size += part.size
        return True

    def arrived(self, co_id: str) -> list[Part]:
        """Return and forget the parts that waited for a value, and now for no other."""
        ready = []
        for part in self._parts:
            if co_id in part.unknown:
                part.unknown.discard(co_id)
                if not part.unknown:
                    ready.append(part)
        self._forget(ready)
        return ready

    def expired(self, now: float) -> list[Part]:
        """Return and forget the parts that have waited too long."""
        late = [part for part in self._parts if part.deadline <= now]
        self._forget(late)
        return late

    def _forget(self, parts: Iterable[Part]) -> None:
        for part in parts:
            self._parts.remove(part)
            self._size -= part.size


def _sizes(batches: Iterable[Batch]) -> Iterator[int]:
    for batch in batches:
        yield 400
        for item in batch.transactions:
            yield 200 + len(item.payload) + len(item.meta or "")
