"""What the typed layer asks of a typed value, whatever its kind: protocols, all kept by `TypedValue`."""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Protocol, Self

from reside.jazz.ids import Json
from reside.jazz.typed.codecs import RefCodec
from reside.jazz.values.owned import OwnedValue


class HasReferences(Protocol):
    """A class with references."""

    @classmethod
    def _references(cls) -> Mapping[str, RefCodec]:
        """The references that a resolve may name, with their codecs; `EACH` for all items."""


class View(HasReferences, Protocol):
    """A typed view of a value."""

    _value_class: ClassVar[type[OwnedValue]]

    @property
    def raw(self) -> Any:
        """The untyped value."""

    @classmethod
    def _view(cls, value: OwnedValue) -> Self:
        """The view of a value; `NotPermitted` if this account may not read it."""

    def _refer(self, name: str) -> Iterable[tuple[str, Json]]:
        """What the name of a reference stands for here: labels for errors, and what the content says."""
