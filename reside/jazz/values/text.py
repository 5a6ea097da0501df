"""CoPlainText: a text that several writers may change at once, grapheme by grapheme (docs/jazz-protocol.md, section 7).

On the wire it is a list of grapheme clusters, what a reader calls characters: a family emoji or an é of two code points
is one item, so nobody's edit falls into the middle of it. Where clusters end follows Unicode; a different Unicode
version at another writer changes no text, only where it can be cut.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, ClassVar, Final

from reside.jazz.values.colist import Ordered
from reside.jazz.values.diff import Patch, patches

if TYPE_CHECKING:
    import regex

_CHUNK: Final = 512
"""Graphemes in one transaction, as the JavaScript library has it."""


@cache
def _cluster() -> "regex.Pattern[str]":
    import regex  # noqa: PLC0415 - a tenth of the start of a program that has no such text

    return regex.compile(r"\X")


def graphemes(text: str) -> list[str]:
    """The extended grapheme clusters of a text (Unicode Standard Annex #29)."""
    if text.isascii() and "\r" not in text:
        return list(text)
    # Two halves of a surrogate pair are one character to JavaScript, however they came together.
    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return _cluster().findall(whole)


class CoPlainText(Ordered):
    """A text; places and lengths count grapheme clusters."""

    kind: ClassVar[str] = "text"

    def __str__(self) -> str:
        return "".join(self.graphemes())

    def __iter__(self) -> Iterator[str]:
        return iter(self.graphemes())

    def graphemes(self) -> list[str]:
        """The grapheme clusters; what is no text, which only a faulty writer inserts, is shown as nothing."""
        return [item.value if isinstance(item.value, str) else "" for item in self._items()]

    def insert(self, index: int, text: str) -> None:
        """Inserts before the grapheme at `index`, with the meaning of `list.insert`.

        Raises:
            NotPermitted: This account may not write here.
        """
        start, _, _ = slice(index, None).indices(len(self))
        self._insert(start, graphemes(text))

    def insert_before(self, index: int, text: str) -> None:
        """Inserts before the grapheme at `index`: the same as `insert`."""
        self.insert(index, text)

    def insert_after(self, index: int, text: str) -> None:
        """Inserts after the grapheme at `index`.

        Raises:
            NotPermitted: This account may not write here.
        """
        start, _, _ = slice(index, None).indices(len(self))
        self.insert(start + 1, text)

    def append(self, text: str) -> None:
        """Adds text at the end.

        Raises:
            NotPermitted: This account may not write here.
        """
        self._insert(len(self), graphemes(text))

    def delete_range(self, start: int, stop: int) -> None:
        """Deletes the graphemes from `start` to before `stop`, in one transaction: `del text[start:stop]`.

        Raises:
            NotPermitted: This account may not write here.
        """
        first, last, _ = slice(start, stop).indices(len(self))
        self._change([Patch(first, max(first, last), ())])

    def apply(self, text: str) -> None:
        """Makes it equal to `text` with the fewest changes, so that what others write meanwhile keeps its place.

        Raises:
            NotPermitted: This account may not write here.
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
