"""What all typed values share: they are drafts first, then views of a value of a node.

A draft holds what is to be written; `create` writes it, and with it the drafts it refers to, and turns all of them
into views. A view holds nothing but the value: it reads what is valid now, and writes at once.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias, TypeVar

from reside.jazz.errors import NotPermitted, ValueNotFound
from reside.jazz.groups.group import Group
from reside.jazz.ids import CoId, Json
from reside.jazz.rules.group_state import WRITERS
from reside.jazz.typed.codecs import RefCodec
from reside.jazz.typed.creating import Inline, WriteTarget, create
from reside.jazz.typed.errors import ReferenceNotFound, SchemaError
from reside.jazz.typed.loading import load_tree
from reside.jazz.typed.resolving import read_resolve
from reside.jazz.typed.watching import DeepWatch
from reside.jazz.values.owned import OwnedValue
from reside.jazz.wire.header import Unique, ValueType, unique_header

if TYPE_CHECKING:
    from reside.jazz.node import Node

T = TypeVar("T")
Resolve: TypeAlias = Callable[[T], object] | Mapping[str, Any] | bool | None
"""Which references to load: a function that reads them, or nested mappings as in jazz-tools."""


class TypedValue(ABC):
    """A typed view of a value, or the draft of one.

    Attributes:
        inline: See `Inline`.
    """

    _value_class: ClassVar[type[OwnedValue]]
    _value_type: ClassVar[ValueType]
    inline: ClassVar[Inline] = "extend"
    _value: OwnedValue | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {'draft' if self._value is None else self._value.id}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TypedValue) or self._value is None or other._value is None:
            return self is other
        return self._value is other._value

    def __hash__(self) -> int:
        if self._value is None:
            raise TypeError(f"a draft has no hash before create(): {self!r}")
        return hash(self._value.id)

    @property
    def is_draft(self) -> bool:
        """Whether it was not created yet."""
        return self._value is None

    @property
    def id(self) -> CoId:
        """The value's id.

        Raises:
            SchemaError: It is a draft.
        """
        return self._live().id

    @property
    def group(self) -> Group:
        """The owning group."""
        return self._live().group

    @property
    def raw(self) -> Any:
        """The untyped value: its history, its edits, what is not in the schema.

        Raises:
            SchemaError: It is a draft.
        """
        return self._live()

    def create(self, owner: "Group | Node") -> Self:
        """Creates it, and all drafts that it refers to.

        Args:
            owner: The group that will own it; a node makes a new group.

        Raises:
            NotPermitted: This account may not write there.
            SchemaMismatch: Something in it does not fit the schema.
        """
        create(self, owner if isinstance(owner, Group) else owner.create_group())
        return self

    @classmethod
    async def load(
        cls,
        node: "Node",
        co_id: str,
        *,
        resolve: Resolve[Self] = None,
        timeout: float = 30.0,  # noqa: ASYNC109 - as Node.load
    ) -> Self:
        """Loads a value, and of its references those that `resolve` reads.

        Args:
            node: The node.
            co_id: The value's id.
            resolve: A function that reads the references to load, as `lambda task: (task.project, task.notes)`, or
                nested mappings, as `{"project": {"tasks": {"$each": True}}}`.
            timeout: For all of it, in seconds.

        Raises:
            ValueNotFound: The server does not have it, or what it refers to (`ReferenceNotFound`).
            NotPermitted: This account may not read it.
            SchemaMismatch: A value is of another kind than the schema says.
            JazzTimeout: It did not come in time.
        """
        tree = await load_tree(node._host, cls, co_id, read_resolve(cls, resolve), timeout=timeout)
        return tree.root

    async def ensure(self, resolve: Resolve[Self], *, timeout: float = 30.0) -> Self:  # noqa: ASYNC109 - as load
        """Loads more of its references; see `load`."""
        model, host = type(self), self._live()._host
        tree = await load_tree(host, model, self.id, read_resolve(model, resolve), timeout=timeout)
        return tree.root

    @classmethod
    def subscribe(cls, node: "Node", co_id: str, *, resolve: Resolve[Self] = None) -> DeepWatch[Self]:
        """Yields it once it and what `resolve` reads is loaded, and again after each change of any of that.

        A slow consumer sees the latest state, never a backlog. Used as an async context manager, it is unsubscribed at
        the end of the block::

            async with Project.subscribe(node, project_id, resolve=lambda project: project.tasks.each) as changes:
                async for project in changes:
                    print([task.title for task in project.tasks])
        """
        return DeepWatch(node._host, cls, co_id, read_resolve(cls, resolve))

    def watch(self, resolve: Resolve[Self] = None) -> DeepWatch[Self]:
        """As `subscribe`, for one that is here."""
        model = type(self)
        return DeepWatch(self._live()._host, model, self.id, read_resolve(model, resolve))

    @classmethod
    async def load_unique(cls, owner: Group, unique: Unique, *, resolve: Resolve[Self] = None) -> Self | None:
        """Loads the one value of this kind and name in a group; None if nobody made it yet.

        Args:
            owner: The owning group.
            unique: The name: a text, or a mapping of texts.
            resolve: See `load`.
        """
        co_id = unique_header(cls._value_type, owner.id, unique).co_id
        spec = read_resolve(cls, resolve)
        try:
            tree = await load_tree(owner._host, cls, co_id, spec, grace=0.0)
        except ReferenceNotFound:
            raise
        except ValueNotFound:
            return None
        return tree.root

    async def get_or_create_unique(self, owner: Group, unique: Unique, *, resolve: Resolve[Self] = None) -> Self:
        """Loads the one value of this kind and name in a group, or makes it of this draft.

        Where two make it at once, only the earlier one's content counts, everywhere.

        Args:
            owner: The owning group.
            unique: The name: a text, or a mapping of texts.
            resolve: See `load`.
        """
        found = await type(self).load_unique(owner, unique, resolve=resolve)
        if found is not None:
            return found
        create(self, owner, unique)
        return self if resolve is None else await self.ensure(resolve)

    def _live(self) -> OwnedValue:
        if self._value is None:
            raise SchemaError(f"this {type(self).__name__} is a draft: it has no value before create()")
        return self._value

    def _check_may_write(self, act: str) -> None:
        """Before drafts are created: what may not refer to them shall not make them."""
        group = self.group
        role = group.my_role
        if role not in WRITERS:
            raise NotPermitted(self.id, group=group.id, role=role, act=act, needs="writer")

    @classmethod
    def _view(cls, value: OwnedValue) -> Self:
        """The view of a value.

        Raises:
            NotPermitted: This account may not read it.
        """
        group = value.group
        role = group.my_role
        if role is None:
            raise NotPermitted(value.id, group=group.id, role=role, act="read", needs="reader")
        made = cls.__new__(cls)
        made._bind(value)
        return made

    def _bind(self, value: OwnedValue) -> None:
        """Makes it the view of a value."""
        self._value = value

    @classmethod
    def _references(cls) -> Mapping[str, RefCodec]:
        """The references that a resolve may name, with their codecs; `EACH` for all items."""
        return {}

    def _refer(self, name: str) -> Iterable[tuple[str, Json]]:
        """What such a name stands for here: labels for errors, and what the content says."""
        raise SchemaError(f"{type(self).__name__} refers to nothing by the name {name}")

    @abstractmethod
    def _write_draft(self, target: WriteTarget) -> OwnedValue:
        """Writes a draft.

        Args:
            target: Where to.
        """
