"""Loading of a value with its references, to the depth given by a resolve; each level is loaded concurrently."""

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from reside.jazz.errors import NotPermitted, ValueNotFound
from reside.jazz.groups.group import Group
from reside.jazz.ids import CoId, Json
from reside.jazz.typed.codecs import Codec, Misfit, RefCodec
from reside.jazz.typed.errors import NotLoaded, ReferenceNotFound, SchemaMismatch
from reside.jazz.typed.resolving import Spec
from reside.jazz.typed.views import View
from reside.jazz.values.host import Host
from reside.jazz.values.value import Value

T = TypeVar("T", bound=View)
_GRACE_S = 2.0


@dataclass
class Tree(Generic[T]):
    """A value and the values loaded below it.

    Attributes:
        root: the view of the value.
        values: all loaded values of the tree, by id.
    """

    root: T
    values: dict[CoId, Value] = field(default_factory=dict)


async def load_tree(
    host: Host,
    model: type[T],
    co_id: str,
    spec: Spec,
    *,
    timeout: float = 30.0,  # noqa: ASYNC109 - as Node.load
    grace: float = _GRACE_S,
) -> Tree[T]:
    """Load a value and the references that a resolve names.

    Args:
        host: the node.
        model: the value's class.
        co_id: the value's id.
        spec: what to load below the value.
        timeout: for the whole load, in seconds.
        grace: how long to wait for a root that the server does not have, in seconds.
    """
    loading = _Loading(host, asyncio.get_running_loop().time() + timeout)
    root = await loading.value(co_id, grace)
    if not isinstance(root, model._value_class):
        raise SchemaMismatch(model.__name__, f"a {model._value_class.kind}", f"a {root.kind}", root)
    view = model._view(root)
    await loading.below(view, spec, model.__name__)
    return Tree(view, loading.values)


def read(codec: Codec, raw: Json, label: str, container: Value) -> Any:
    """Decode the JSON of a field or an item.

    Raises:
        SchemaMismatch: it does not fit.
        NotLoaded: it is a reference to a value that is not loaded.
        NotPermitted: it is a reference to a value that this account may not read.
    """
    try:
        decoded = codec.decode(raw)
    except Misfit as misfit:
        raise SchemaMismatch(label, codec.expected, misfit.found, container) from None
    if decoded is None or not isinstance(codec, RefCodec):
        return decoded
    value = container._host.find(decoded)
    if not isinstance(value, Value):
        raise NotLoaded(decoded, label)
    container._hold(label, value)
    return view_of(codec, value, label, container)


def view_of(codec: RefCodec, value: Value, label: str, container: Value) -> Any:
    """Return a value as the class of a reference: as a typed view, or the group or untyped value itself."""
    target: Any = codec.choose(value)
    if target is not None and not hasattr(target, "_value_class") and isinstance(value, target):
        return value
    if target is not None and hasattr(target, "_value_class") and isinstance(value, target._value_class):
        return target._view(value)
    raise SchemaMismatch(label, codec.expected, f"{value.id}, a {value.kind}", container)


class _Loading:
    """One load operation.

    Args:
        host: the node.
        deadline: when it must be finished, by the event loop's clock.
    """

    def __init__(self, host: Host, deadline: float) -> None:
        self._host = host
        self._deadline = deadline
        self.values: dict[CoId, Value] = {}

    async def value(self, co_id: str, grace: float) -> Value:
        """Load one value."""
        remaining = max(0.0, self._deadline - asyncio.get_running_loop().time())
        value = await self._host.load_as(co_id, Value, timeout=remaining, grace=grace)
        self.values[value.id] = value
        return value

    async def below(self, view: View, spec: Spec, path: str) -> None:
        """Load what a resolve names below a value."""
        await _all(list(self._absent(view, spec, path)))

    def _absent(self, view: View, spec: Spec, path: str) -> Iterator[Coroutine[Any, Any, None]]:
        """Take values that are in memory, at any depth, and yield the loads of all others."""
        for name, below in spec.names.items():
            codec = _codec(view, name)
            for label, raw in view._refer(name) if codec is not None else ():
                if codec is None or raw is None:
                    continue
                place = _Place(view.raw, codec, f"{path}{label}", below)
                value = self._in_memory(place.id_of(raw))
                if value is None:
                    yield self._load(place, place.id_of(raw))
                else:
                    yield from self._take(place, value)

    def _in_memory(self, co_id: str) -> Value | None:
        value = self._host.find(co_id)
        if not isinstance(value, Value) or not self._host.has(value):
            return None
        self.values[value.id] = value
        return value

    async def _load(self, place: "_Place", co_id: str) -> None:
        try:
            value = await self.value(co_id, 0.0 if place.spec.tolerant else _GRACE_S)
        except ValueNotFound as error:
            if place.spec.tolerant:
                return
            raise ReferenceNotFound(error, place.path, place.container.id) from error
        await _all(list(self._take(place, value)))

    def _take(self, place: "_Place", value: Value) -> Iterator[Coroutine[Any, Any, None]]:
        try:
            child = view_of(place.codec, value, place.path, place.container)
        except NotPermitted:
            if place.spec.tolerant:
                return
            raise
        place.container._hold(place.path, value)
        if place.spec.names and not isinstance(child, Group | Value):
            yield from self._absent(child, place.spec, place.path)


@dataclass(frozen=True)
class _Place:
    """A reference: the value that contains it, its codec, its path for errors, and what to load below it."""

    container: Value
    codec: RefCodec
    path: str
    spec: Spec

    def id_of(self, raw: Json) -> str:
        try:
            return str(self.codec.decode(raw))
        except Misfit as misfit:
            raise SchemaMismatch(self.path, self.codec.expected, misfit.found, self.container) from None


async def _all(pending: Sequence[Any]) -> None:
    """Run coroutines concurrently. The first failure cancels the others and is raised unchanged."""
    if len(pending) == 1:
        await pending[0]
        return
    try:
        async with asyncio.TaskGroup() as group:
            for one in pending:
                group.create_task(one)
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None


def _codec(view: View, name: str) -> RefCodec | None:
    references = view._references()
    if name in references:
        return references[name]
    return references.get("$each") if getattr(type(view), "_has_keys", False) else None
