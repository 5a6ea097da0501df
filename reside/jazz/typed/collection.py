"""The base class of lists, records and feeds: one type of items, given in brackets: `ListOf[Task]`."""

from abc import abstractmethod
from typing import Any, ClassVar, Generic, TypeVar

from reside.jazz.typed.base import TypedValue
from reside.jazz.typed.codecs import Codec, RefCodec
from reside.jazz.typed.creating import Inline
from reside.jazz.typed.errors import SchemaError
from reside.jazz.typed.fields import codec_of, read_annotation
from reside.jazz.typed.loading import read
from reside.jazz.typed.resolving import EACH

T = TypeVar("T")


class Collection(TypedValue, Generic[T]):
    """A typed value with items of one type."""

    _origin: ClassVar[type | None] = None
    _item: ClassVar[Any] = None
    _made: ClassVar[dict[Any, type]] = {}

    def __init_subclass__(cls, *, inline: Inline | None = None, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        cls.inline = inline if inline is not None else cls.inline

    def __class_getitem__(cls, item: Any) -> Any:
        if isinstance(item, TypeVar):
            return super().__class_getitem__(item)  # type: ignore[misc] # that of Generic, which mypy does not see
        key = (cls, item)
        if key not in Collection._made:
            name = item if isinstance(item, str) else getattr(item, "__name__", str(item))
            members = {"_item": item, "_origin": cls, "__module__": cls.__module__}
            Collection._made[key] = type(f"{cls.__name__}[{name}]", (cls,), members)
        return Collection._made[key]

    @classmethod
    def _item_codec(cls) -> Codec:
        """Return the codec of the items."""
        found: Codec | None = vars(cls).get("_codec")
        if found is None:
            if cls._item is None:
                raise SchemaError(f"give the type of its items, for example {cls.__name__}[str]")
            label = f"{cls.__name__}[…]"
            found = codec_of(read_annotation(cls._item, cls, label), label)
            cls._codec = found  # type: ignore[attr-defined] # each class has its own, which vars() above reads
        return found

    @classmethod
    def _references(cls) -> dict[str, RefCodec]:
        """See `TypedValue`."""
        codec = cls._item_codec()
        return {EACH: codec} if isinstance(codec, RefCodec) else {}

    def _specialise(self, target: type) -> None:
        """Give the draft a class with an item type."""
        self.__class__ = target  # a subclass that adds only the item type
        self._check_draft()

    @abstractmethod
    def _check_draft(self) -> None:
        """Check that the items of a draft fit."""

    @property
    def each(self) -> T:
        """All items, in a resolve function."""
        raise SchemaError("`each` is valid only in a resolve function; iterate over the value itself")

    def _read(self, raw: Any, place: object) -> T:
        item: T = read(self._item_codec(), raw, f"{type(self).__name__}[{place!r}]", self.raw)
        return item
