"""The base class of typed values. A new object is a draft; after `create` it is a view of a value of a node.

A draft contains what is to be written. `create` writes it and all drafts that it refers to, and turns them into views.
A view has no content of its own: it reads the valid content of the value and writes to it immediately.
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
"""Which references to load: a function that reads them, or nested mappings, as in jazz-tools."""


class TypedValue(ABC):
    """A typed view of a value, or its draft.

    Attributes:
        inline: see `Inline`.
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
        """Whether this is a draft, whose value does not exist yet."""
        return self._value is None

    @property
    def id(self) -> CoId:
        """The value's id.

        Raises:
            SchemaError: the value is a draft.
        """
        return self._live().id

    @property
    def group(self) -> Group:
        """The owning group."""
        return self._live().group

    @property
    def raw(self) -> Any:
        """The untyped value, for history, edits and content outside the schema.

        Raises:
            SchemaError: the value is a draft.
        """
        return self._live()

    def create(self, owner: "Group | Node") -> Self:
        """Create the value and all drafts that it refers to.

        Args:
            owner: the group that will own it; a node creates a new group.

        Raises:
            NotPermitted: this account may not write there.
            SchemaMismatch: a part of it does not fit the schema.
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
        """Load a value and those of its references that `resolve` reads.

        Args:
            node: the node.
            co_id: the value's id.
            resolve: a function that reads the references to load, such as `lambda task: (task.project, task.notes)`; or
                nested mappings, such as `{"project": {"tasks": {"$each": True}}}`.
            timeout: for the whole load, in seconds.

        Raises:
            ValueNotFound: the server does not have the value, or one that it refers to (`ReferenceNotFound`).
            NotPermitted: this account may not read it.
            SchemaMismatch: a value is of another kind than the schema declares.
            JazzTimeout: it was not loaded in time.
        """
        tree = await load_tree(node._host, cls, co_id, read_resolve(cls, resolve), timeout=timeout)
        return tree.root

    async def ensure(self, resolve: Resolve[Self], *, timeout: float = 30.0) -> Self:  # noqa: ASYNC109 - as load
        """Load more of the value's references; see `load`."""
        model, host = type(self), self._live()._host
        tree = await load_tree(host, model, self.id, read_resolve(model, resolve), timeout=timeout)
        return tree.root

    @classmethod
    def subscribe(cls, node: "Node", co_id: str, *, resolve: Resolve[Self] = None) -> DeepWatch[Self]:
        """Yield the value when it and everything that `resolve` reads is loaded, and after each change of any of it.

        A slow consumer gets the latest state, never a backlog. As an async context manager, it unsubscribes at the end
        of the block::

            async with Project.subscribe(node, project_id, resolve=lambda project: project.tasks.each) as changes:
                async for project in changes:
                    print([task.title for task in project.tasks])
        """
        return DeepWatch(node._host, cls, co_id, read_resolve(cls, resolve))

    def watch(self, resolve: Resolve[Self] = None) -> DeepWatch[Self]:
        """Watch this value and what `resolve` reads; see `subscribe`."""
        model = type(self)
        return DeepWatch(self._live()._host, model, self.id, read_resolve(model, resolve))

    @classmethod
    async def load_unique(cls, owner: Group, unique: Unique, *, resolve: Resolve[Self] = None) -> Self | None:
        """Load the unique value of this kind with a name in a group; None if there is none.

        Args:
            owner: the owning group.
            unique: the name: a text, or a mapping of texts.
            resolve: see `load`.
        """
        co_id = unique_header(cls._value_type, owner.id, unique).co_id
        spec = read_resolve(cls, resolve)
        try:
            value: OwnedValue = await owner._host.load_as(co_id, cls._value_class, grace=0.0)
            if not value.is_initialized:
                return None
            tree = await load_tree(owner._host, cls, co_id, spec, grace=0.0)
        except ReferenceNotFound:
            raise
        except ValueNotFound:
            return None
        return tree.root

    async def get_or_create_unique(self, owner: Group, unique: Unique, *, resolve: Resolve[Self] = None) -> Self:
        """Load the unique value of this kind with a name in a group; create it from this draft if there is none.

        If several nodes create it concurrently, only the earliest content counts, on all nodes.

        Args:
            owner: the owning group.
            unique: the name: a text, or a mapping of texts.
            resolve: see `load`.
        """
        found = await type(self).load_unique(owner, unique, resolve=resolve)
        if found is not None:
            return found
        create(self, owner, unique)
        return self if resolve is None else await self.ensure(resolve)

    def _live(self) -> OwnedValue:
        if self._value is None:
            raise SchemaError(f"this {type(self).__name__} is a draft: it has no value before create(owner)")
        return self._value

    def _check_may_write(self, act: str) -> None:
        """Check the permission before drafts are created: a failed write must not create them."""
        group = self.group
        role = group.my_role
        if role not in WRITERS:
            raise NotPermitted(self.id, group=group.id, role=role, act=act, needs="writer")

    @classmethod
    def _view(cls, value: OwnedValue) -> Self:
        """Return a view of a value.

        Raises:
            NotPermitted: this account may not read it.
        """
        if value.has_owner and value.group.my_role is None:
            raise NotPermitted(value.id, group=value.group.id, role=None, act="read", needs="reader")
        made = cls.__new__(cls)
        made._bind(value)
        return made

    def _bind(self, value: OwnedValue) -> None:
        """Turn this object into a view of a value."""
        self._value = value

    @classmethod
    def _references(cls) -> Mapping[str, RefCodec]:
        """Return the references that a resolve may name, with their codecs; `EACH` means all items."""
        return {}

    def _refer(self, name: str) -> Iterable[tuple[str, Json]]:
        """Return what a name refers to here: labels for errors, and the raw content."""
        raise SchemaError(f"{type(self).__name__} has no reference {name}")

    @abstractmethod
    def _write_draft(self, target: WriteTarget) -> OwnedValue:
        """Write a draft.

        Args:
            target: where to write it.
        """
