"""The objects that callers hold: one for each value of a node, of the class that the value's header says."""

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final, TypeVar
from weakref import WeakValueDictionary

from reside.jazz.errors import ValueNotFound, WrongKind
from reside.jazz.events.watch import Watchable
from reside.jazz.groups.account import Account
from reside.jazz.groups.group import Group
from reside.jazz.ids import CoId
from reside.jazz.memory.covalue import Core
from reside.jazz.values.cofeed import CoFeed
from reside.jazz.values.colist import CoList
from reside.jazz.values.comap import CoMap
from reside.jazz.values.host import Host
from reside.jazz.values.stream import FileStream
from reside.jazz.values.text import CoPlainText
from reside.jazz.values.value import Value
from reside.jazz.wire.header import Header

T = TypeVar("T", bound=Watchable)


_RECENT: Final = 128
"""So many objects are kept although nobody holds them."""


class IdentityMap:
    """The objects of one node: kept for as long as somebody holds them, and a while longer.

    Args:
        host: The node, for the values.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._made: WeakValueDictionary[CoId, Value] = WeakValueDictionary()
        self._recent: OrderedDict[CoId, Value] = OrderedDict()
        self._own: Value | None = None

    def of(self, core: Core, kind: type[T]) -> T:
        """The object of a value.

        Raises:
            ValueNotFound: The value is not here.
            WrongKind: It is of another kind.
        """
        value = self._made.get(core.co_id)
        if value is None:
            if core.header is None:
                raise ValueNotFound(core.co_id, "it was not loaded")
            # What an earlier object, which nobody holds any more, made of the log went with it.
            core.stale = True
            value = self._made[core.co_id] = _class_of(core.header)(self._host, core)
        self._use(value)
        if not isinstance(value, kind):
            raise WrongKind(core.co_id, expected=getattr(kind, "kind", kind.__name__), actual=value.kind)
        return value

    def here(self, co_id: str) -> Core | None:
        """A value if it is here, whether or not it has an object yet."""
        core = self._host.store.cores.get(CoId(co_id))
        return None if core is None or core.header is None else core

    def held(self) -> Iterable[CoId]:
        """The values whose object somebody holds."""
        return list(self._made.keys())

    def release(self) -> None:
        """Forgets which objects were used last."""
        self._recent.clear()

    def _use(self, value: Value) -> None:
        if value.id == CoId(self._host.account_id):
            self._own = value
        # What is loaded again and again by its id is not built anew each time.
        self._recent[value.id] = value
        self._recent.move_to_end(value.id)
        if len(self._recent) > _RECENT:
            self._recent.popitem(last=False)

    def find(self, co_id: str) -> Value | None:
        """The object of a value if there is one already."""
        return self._made.get(CoId(co_id))


def _class_of(header: Header) -> type[Value]:
    if header.is_account:
        return Account
    if header.is_group:
        return Group
    if header.is_file:
        return FileStream
    kinds: dict[str, type[Value]] = {"comap": CoMap, "colist": CoList, "costream": CoFeed, "coplaintext": CoPlainText}
    return kinds[header.value_type]
