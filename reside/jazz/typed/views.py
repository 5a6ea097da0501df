"""What the typed layer needs of a typed value of any kind: protocols, all implemented by `TypedValue`."""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Protocol, Self

from reside.jazz.ids import Json
from reside.jazz.typed.codecs import RefCodec


class HasReferences(Protocol):
    """A class with references."""

    @classmethod
    def _references(cls) -> Mapping[str, RefCodec]:
        """Return the references that a resolve may name, with their codecs; `EACH` means all items."""


class View(HasReferences, Protocol):
    """A typed view of a value."""

    _value_class: ClassVar[Any]  # a type[Value]; subclasses narrow it

    @property
    def raw(self) -> Any:
        """The untyped value."""

    @classmethod
    def _view(cls, value: Any) -> Self:
        """Return a view of a value; raise `NotPermitted` if this account may not read it."""

    def _refer(self, name: str) -> Iterable[tuple[str, Json]]:
        """Return what the name of a reference refers to here: labels for errors, and the raw content."""
