"""Making values: fresh ones, and those that everybody finds by their name in a group."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeVar

from reside.jazz.events.watch import Watchable
from reside.jazz.ids import Json
from reside.jazz.node.identity_map import IdentityMap
from reside.jazz.operations.writer import Writer
from reside.jazz.values.cofeed import CoFeed
from reside.jazz.values.colist import CoList
from reside.jazz.values.comap import CoMap
from reside.jazz.values.owned import OwnedValue
from reside.jazz.values.stream import FileStream
from reside.jazz.values.text import CoPlainText
from reside.jazz.wire.header import Header, owned_header

V = TypeVar("V", bound=OwnedValue)

_FILE_META: Final = {"type": "binary"}


class Creator:
    """Makes the values of one node.

    Args:
        writer: Writes them.
        objects: Their objects.
        clock: Gives ms since the epoch.
    """

    def __init__(self, writer: Writer, objects: IdentityMap, clock: Callable[[], int]) -> None:
        self._writer = writer
        self._objects = objects
        self._clock = clock

    def map(self, owner: Watchable, init: Mapping[str, Json]) -> CoMap:
        """A new map; see `Group.create_map`."""
        value = self._make(owned_header("comap", owner.id, self._clock()), CoMap)
        value.update(init)
        return value

    def list(self, owner: Watchable, items: Iterable[Json], *, restrict_deletion: bool = False) -> CoList:
        """A new list; see `Group.create_list`."""
        header = owned_header("colist", owner.id, self._clock(), restrict_deletion=restrict_deletion)
        value = self._make(header, CoList)
        value.extend(items)
        return value

    def feed(self, owner: Watchable) -> CoFeed:
        """A new feed; see `Group.create_feed`."""
        return self._make(owned_header("costream", owner.id, self._clock()), CoFeed)

    def text(self, owner: Watchable, text: str) -> CoPlainText:
        """A new text; see `Group.create_text`."""
        value = self._make(owned_header("coplaintext", owner.id, self._clock()), CoPlainText)
        value.append(text)
        return value

    def file(self, owner: Watchable, mime_type: str, *, name: str | None, size: int | None) -> FileStream:
        """A new file that is started; see `Group.open_file`."""
        value = self._make(owned_header("costream", owner.id, self._clock(), meta=_FILE_META), FileStream)
        value._start(mime_type, name=name, size=size)
        return value

    def unique(self, header: Header, kind: type[V], changes: Sequence[Json]) -> V:
        """The value of a unique header, made with its first content if it is not here yet.

        Args:
            header: See `unique_header`.
            kind: The class of its object.
            changes: The first content. Where two make it at once, only the earlier one's counts.
        """
        known = self._objects.here(header.co_id)
        if known is not None:
            return self._objects.of(known, kind)
        value = self._make(header, kind)
        value._write_first(changes)
        return value

    def _make(self, header: Header, kind: type[V]) -> V:
        return self._objects.of(self._writer.create(header), kind)
