"""The identity map: one object for each value of a node, of the class that the value's header determines."""

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
"""Number of last used objects that are kept although no caller refers to them."""


class IdentityMap:
    """The objects of one node. An object is kept while the caller refers to it, and while it is among the last used.

    Args:
        host: the node, passed to the values.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._made: WeakValueDictionary[CoId, Value] = WeakValueDictionary()
        self._recent: OrderedDict[CoId, Value] = OrderedDict()
        self._own: Value | None = None

    def of(self, core: Core, kind: type[T]) -> T:
        """Return the object of a value; create it if necessary.

        Raises:
            ValueNotFound: the value is not in memory.
            WrongKind: it is of another kind.
        """
        value = self._made.get(core.co_id)
        if value is None:
            if core.header is None:
                raise ValueNotFound(core.co_id, "it is not in memory; await node.load(…) first")
            # The content that an earlier, discarded object built from the log no longer exists: build it again.
            core.stale = True
            value = self._made[core.co_id] = _class_of(core.header)(self._host, core)
        self._use(value)
        if not isinstance(value, kind):
            raise WrongKind(core.co_id, expected=getattr(kind, "kind", kind.__name__), actual=value.kind)
        return value

    def in_memory(self, co_id: str) -> Core | None:
        """Return a value if it is in memory, whether or not it has an object."""
        core = self._host.store.cores.get(CoId(co_id))
        return None if core is None or core.header is None else core

    def held(self) -> Iterable[CoId]:
        """Return the ids of all values that have an object."""
        return list(self._made.keys())

    def release(self) -> None:
        """Forget which objects were used last."""
        self._recent.clear()

    def let_go(self, co_id: CoId) -> None:
        """Forget that the object of a value was used lately."""
        self._recent.pop(co_id, None)

    def _use(self, value: Value) -> None:
        if value.id == CoId(self._host.account_id):
            self._own = value
        self._host.store.decoded.used(value.id)
        # Repeated loads by id must not rebuild the content each time.
        self._recent[value.id] = value
        self._recent.move_to_end(value.id)
        if len(self._recent) > _RECENT:
            self._recent.popitem(last=False)

    def find(self, co_id: str) -> Value | None:
        """Return the existing object of a value; None if there is none."""
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
