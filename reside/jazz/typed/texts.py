"""Texts that several writers may change concurrently, like `co.plainText` in jazz-tools."""

from typing import ClassVar

from reside.jazz.typed.base import TypedValue
from reside.jazz.typed.creating import WriteTarget
from reside.jazz.values.owned import OwnedValue
from reside.jazz.values.text import CoPlainText
from reside.jazz.wire.header import ValueType


class Text(TypedValue):
    """A text in a field: `Text("…")` is a draft, `str(text)` reads, `apply` writes the changes.

    `raw` has edits by position: `text.raw.insert(0, "…")`.
    """

    _value_class: ClassVar[type[OwnedValue]] = CoPlainText
    _value_type: ClassVar[ValueType] = "coplaintext"

    def __init__(self, text: str = "") -> None:
        self._draft = text

    def __str__(self) -> str:
        return self._draft if self._value is None else str(self._value)

    def __len__(self) -> int:
        return len(self._draft) if self._value is None else len(self.plain)

    @property
    def plain(self) -> CoPlainText:
        """The untyped value."""
        plain: CoPlainText = self.raw
        return plain

    def apply(self, text: str) -> None:
        """Make it equal to `text` with the fewest changes, so that concurrent edits of others keep their position.

        Raises:
            NotPermitted: this account may not write here.
        """
        if self._value is None:
            self._draft = text
        else:
            self.plain.apply(text)

    def _write_draft(self, target: WriteTarget) -> OwnedValue:
        """See `TypedValue`."""
        made = target.owner.create_text(self._draft) if target.unique is None else self._unique(target)
        self._draft = ""
        return made

    def _unique(self, target: WriteTarget) -> CoPlainText:
        made = target.unique_value("coplaintext", CoPlainText, [])
        if self._draft and not len(made):
            made.append(self._draft)
        return made
