"""CoPlainText: a text that several writers may change concurrently (docs/jazz-protocol.md, section 7).

On the wire it is a list of grapheme clusters, which readers perceive as characters. A family emoji, or an é of two code
points, is one item, so no edit can split it. Unicode defines where clusters end. A writer with a different Unicode
version sees the same text, but may split it elsewhere.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, ClassVar, Final

from reside.jazz.values.colist import Ordered
from reside.jazz.values.diff import Patch, patches

if TYPE_CHECKING:
    import regex

_CHUNK: Final = 512
"""Maximum number of graphemes in one transaction, as in the JavaScript library."""


@cache
def _cluster() -> "regex.Pattern[str]":
    try:
        import regex  # noqa: PLC0415 - takes a tenth of the start-up time of programs that need no texts
    except ModuleNotFoundError:
        raise ImportError("texts outside of ASCII need regex: pip install 'reside-jazz[text]'") from None

    return regex.compile(r"\X")


def graphemes(text: str) -> list[str]:
    """Return the extended grapheme clusters of a text (Unicode Standard Annex #29)."""
    if text.isascii() and "\r" not in text:
        return list(text)
    # In JavaScript, adjacent halves of a surrogate pair are one character, even if they were inserted separately.
    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return _cluster().findall(whole)


class CoPlainText(Ordered):
    """A text. Positions and lengths count grapheme clusters."""

    kind: ClassVar[str] = "text"

    def __str__(self) -> str:
        return self.as_text()

    def __iter__(self) -> Iterator[str]:
        return iter(self.graphemes())

    def as_text(self, *, at: int | None = None) -> str:
        """Return the text.

        Args:
            at: a time in ms since the epoch: return what was written until then, by the authors' clocks.
        """
        return "".join(self.graphemes(at=at))

    def graphemes(self, *, at: int | None = None) -> list[str]:
        """Return the grapheme clusters. A faulty writer may insert items that are not text; they become empty texts.

        Args:
            at: see `as_text`.
        """
        return [item.value if isinstance(item.value, str) else "" for item in self._items(at)]

    def insert(self, index: int, text: str) -> None:
        """Insert a text before the grapheme at `index`. The index has the meaning that it has in `list.insert`.

        Raises:
            NotPermitted: this account may not write here.
        """
        start, _, _ = slice(index, None).indices(len(self))
        self._insert(start, graphemes(text))

    def insert_before(self, index: int, text: str) -> None:
        """Insert a text before the grapheme at `index`; the same as `insert`."""
        self.insert(index, text)

    def insert_after(self, index: int, text: str) -> None:
        """Insert a text after the grapheme at `index`.

        Raises:
            NotPermitted: this account may not write here.
        """
        start, _, _ = slice(index, None).indices(len(self))
        self.insert(start + 1, text)

    def append(self, text: str) -> None:
        """Add a text at the end.

        Raises:
            NotPermitted: this account may not write here.
        """
        self._insert(len(self), graphemes(text))

    def delete_range(self, start: int, stop: int) -> None:
        """Delete the graphemes from `start` to before `stop`, in one transaction: `del text[start:stop]`.

        Raises:
            NotPermitted: this account may not write here.
        """
        first, last, _ = slice(start, stop).indices(len(self))
        self._change([Patch(first, max(first, last), ())])

    def apply(self, text: str) -> None:
        """Make it equal to `text` with the fewest changes, so that concurrent edits of others keep their position.

        Raises:
            NotPermitted: this account may not write here.
        """
        changed = patches(self.graphemes(), graphemes(text))
        if sum(len(patch.inserted) for patch in changed) <= _CHUNK:
            self._change(changed)
            return
        for patch in reversed(changed):
            self.delete_range(patch.start, patch.stop)
            self._insert(patch.start, patch.inserted)

    def _insert(self, place: int, added: Sequence[str]) -> None:
        for begin in range(0, len(added), _CHUNK):
            chunk = added[begin : begin + _CHUNK]
            self._change([Patch(place + begin, place + begin, chunk)])
