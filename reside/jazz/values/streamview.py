"""The parts of a file, joined from the transactions of its sessions.

A part that arrives costs the same however long the file is already: sizes are added up as parts arrive, and the file is
joined again only if the order of its sessions changes, or if a session goes on that is not the last one.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from reside.jazz.errors import InvalidContent
from reside.jazz.ids import Json
from reside.jazz.wire.encoding import b64decode
from reside.jazz.wire.session import Transaction

PREFIX: Final = "binary_U"
"""Precedes the base64url text of a chunk."""


class FileInfo(NamedTuple):
    """The description that the writer gave at the start of a file; it is not verified.

    Attributes:
        mime_type: for example `image/png`.
        name: the file's name; None if not given.
        size: size in bytes; None if not given.
    """

    mime_type: str
    name: str | None = None
    size: int | None = None


class Chunk(NamedTuple):
    """Bytes of a file.

    Attributes:
        key: its session, transaction and change.
        text: the prefix and the bytes in base64url.
    """

    key: tuple[str, int, int]
    text: str

    @property
    def size(self) -> int:
        """Size in bytes, computed from the length of the text."""
        padding = 2 if self.text.endswith("==") else self.text.endswith("=")
        return max(0, (len(self.text) - padding - len(PREFIX)) * 3 // 4)

    def read(self) -> bytes:
        """Return the bytes.

        Raises:
            InvalidContent: the text is malformed.
        """
        if not self.text.startswith(PREFIX):
            raise InvalidContent("a file's chunk is malformed")
        return b64decode(self.text[len(PREFIX) :])


class StreamView:
    """The parts of a file, ordered by session.

    Attributes:
        info: the description; None if there is none.
        chunks: the parts.
        size: their size in bytes.
        ended: whether the end was written.
        version: grows when the file was joined again, so that parts may have gone or moved.
    """

    def __init__(self) -> None:
        self._sessions: dict[str, list[Transaction]] = {}
        self._order: list[str] = []
        self.version = 0
        self._clear()

    def reset(self, transactions: Sequence[Transaction], losers: frozenset[Transaction]) -> None:
        """Rebuild the view."""
        self._sessions, self._order = {}, []
        self._clear()
        self.extend([item for item in transactions if item not in losers])

    def extend(self, transactions: Sequence[Transaction]) -> None:
        """Add transactions in their order of arrival."""
        for item in transactions:
            self._sessions.setdefault(item.session, []).append(item)
        known = self._order
        if len(known) < len(self._sessions):
            self._order = sorted(self._sessions, key=lambda session: self._sessions[session][0].when)
        if self._order[: len(known)] == known and all(item.session == self._order[-1] for item in transactions):
            self._take(transactions)
            return
        self._clear()
        for session in self._order:
            self._take(self._sessions[session])

    def _clear(self) -> None:
        self.info: FileInfo | None = None
        self.chunks: list[Chunk] = []
        self.size = 0
        self.ended = False
        self.version += 1

    def _take(self, transactions: Sequence[Transaction]) -> None:
        for item in transactions:
            for place, change in enumerate(item.changes or ()):
                if self.ended:
                    return
                if isinstance(change, dict):
                    self._apply((item.session, item.index, place), change)

    def _apply(self, key: tuple[str, int, int], change: dict[str, Json]) -> None:
        kind = change.get("type")
        if kind == "start" and isinstance(change.get("mimeType"), str):
            name, size = change.get("fileName"), change.get("totalSizeBytes")
            self.info = FileInfo(
                change["mimeType"], name if isinstance(name, str) else None, size if type(size) is int else None
            )
        elif kind == "chunk" and isinstance(change.get("chunk"), str):
            chunk = Chunk(key, change["chunk"])
            self.chunks.append(chunk)
            self.size += chunk.size
        elif kind == "end":
            self.ended = True
