"""Creation of values: new ones, and unique ones, whose id follows from their name and group."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeVar

from reside.jazz.events.watch import Watchable
from reside.jazz.ids import Json
from reside.jazz.node.identity_map import IdentityMap
from reside.jazz.operations.writer import Writer
from reside.jazz.values.cofeed import CoFeed
from reside.jazz.values.colist import CoList
from reside.jazz.values.comap import CoMap, assigning
from reside.jazz.values.owned import OwnedValue
from reside.jazz.values.stream import FileStream
from reside.jazz.values.text import CoPlainText
from reside.jazz.wire.header import Header, owned_header

V = TypeVar("V", bound=OwnedValue)

_FILE_META: Final = {"type": "binary"}


class Creator:
    """Create the values of one node.

    Args:
        writer: writes their transactions.
        objects: maps them to their objects.
        clock: returns ms since the epoch.
    """

    def __init__(self, writer: Writer, objects: IdentityMap, clock: Callable[[], int]) -> None:
        self._writer = writer
        self._objects = objects
        self._clock = clock

    def map(self, owner: Watchable, init: Mapping[str, Json]) -> CoMap:
        """Create a map; see `Group.create_map`."""
        changes = assigning(init)  # before anything is created: it may refuse a key
        value = self._make(owned_header("comap", owner.id, self._clock()), CoMap)
        if changes:
            value._write(changes)
        return value

    def list(self, owner: Watchable, items: Iterable[Json], *, restrict_deletion: bool = False) -> CoList:
        """Create a list; see `Group.create_list`."""
        header = owned_header("colist", owner.id, self._clock(), restrict_deletion=restrict_deletion)
        value = self._make(header, CoList)
        value.extend(items)
        return value

    def feed(self, owner: Watchable) -> CoFeed:
        """Create a feed; see `Group.create_feed`."""
        return self._make(owned_header("costream", owner.id, self._clock()), CoFeed)

    def text(self, owner: Watchable, text: str) -> CoPlainText:
        """Create a text; see `Group.create_text`."""
        value = self._make(owned_header("coplaintext", owner.id, self._clock()), CoPlainText)
        value.append(text)
        return value

    def file(self, owner: Watchable, mime_type: str, *, name: str | None, size: int | None) -> FileStream:
        """Create a file and write its description; see `Group.open_file`."""
        value = self._make(owned_header("costream", owner.id, self._clock(), meta=_FILE_META), FileStream)
        value._start(mime_type, name=name, size=size)
        return value

    def branch(self, header: Header, kind: type[V]) -> V:
        """Create the branch of a header, as an object of a class; see `OwnedValue.branch`."""
        return self._make(header, kind)

    def unique(self, header: Header, kind: type[V], changes: Sequence[Json]) -> V:
        """Return the value of a unique header. If it has no valid content in memory, write its first content.

        Args:
            header: see `unique_header`.
            kind: the class of the value's object.
            changes: the first content. If several nodes create the value concurrently, only the earliest content
                counts.
        """
        known = self._objects.in_memory(header.co_id)
        value = self._make(header, kind) if known is None else self._objects.of(known, kind)
        if not value.is_initialized:
            value._write_first(changes)
        return value

    def _make(self, header: Header, kind: type[V]) -> V:
        return self._objects.of(self._writer.create(header), kind)
