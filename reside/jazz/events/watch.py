"""Subscriptions to changes: a registry that wakes watchers once each event-loop turn, and the iterator for callers.

A watcher has no queue: it is woken and then reads the current state. So a slow watcher does not use more memory.
"""

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, Generic, Protocol, Self, TypeVar
from weakref import WeakSet

from reside.jazz.errors import JazzError, NodeClosed
from reside.jazz.ids import CoId

_PRUNE_BEYOND: Final = 512
"""With more watched values than this, those whose iterators were all garbage-collected are removed."""


class Watchable(Protocol):
    """A value with a revision, which can be watched."""

    @property
    def id(self) -> CoId:
        """The value's id."""

    def _refresh(self) -> int:
        """Update the content; return a number that grows with every change of the valid content."""


T = TypeVar("T", bound=Watchable)


class Wakeable(Protocol):
    """A subscriber that a change wakes."""

    def _wake(self) -> None:
        """Check the value again, because something changed or the node was closed."""


class Watch(Generic[T]):
    """An async iterator over the states of one value."""

    def __init__(self, value: T, watches: "Watches") -> None:
        self._value = value
        self._watches = watches
        self._revision: int | None = None
        self._woken = asyncio.Event()
        self._woken.set()
        self._closed = False
        watches.add(value.id, self)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        """Wait until the value differs from the last returned state; return the value.

        Raises:
            NodeClosed: the node was closed, so there will be no more changes.
            StoreFailed: the local store ended the node.
        """
        while True:
            await self._woken.wait()
            if self._closed:
                raise StopAsyncIteration
            self._watches.check_open(f"{self._value.id} was watched")
            self._woken.clear()
            revision = self._value._refresh()
            if revision != self._revision:
                self._revision = revision
                return self._value

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Unsubscribe; a waiting iteration ends."""
        self._closed = True
        self._watches.discard(self._value.id, self)
        self._woken.set()

    def _wake(self) -> None:
        """Make the iterator check the value again."""
        self._woken.set()


class _Callback:
    """A subscribed callback and the revision that it was last called with."""

    __slots__ = ("_all", "callback", "revision", "value")

    def __init__(
        self, value: Watchable, callback: Callable[[Any], None], subscribed: "dict[CoId, list[_Callback]]"
    ) -> None:
        self.value = value
        self.callback = callback
        self.revision: int = value._refresh()
        self._all = subscribed

    def unsubscribe(self) -> None:
        entries = self._all.get(self.value.id, [])
        if self in entries:
            entries.remove(self)
        if not entries:
            self._all.pop(self.value.id, None)

    def call(self) -> None:
        try:
            self.callback(self.value)
        # An error must not affect other subscribers. A cancelled task whose result is read raises CancelledError.
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - see above
            message = f"a callback for {self.value.id} failed"
            asyncio.get_running_loop().call_exception_handler({"message": message, "exception": error})


class Watches:
    """All subscriptions of a node, by value."""

    def __init__(self) -> None:
        self._end: JazzError | None = None
        self._iterators: dict[CoId, WeakSet[Wakeable]] = {}
        self._prune_beyond = _PRUNE_BEYOND
        self._callbacks: dict[CoId, list[_Callback]] = {}
        self._changed: dict[CoId, None] = {}

    def check_open(self, doing: str) -> None:
        """Raise an error if the node has ended.

        Args:
            doing: what the caller was doing, for the error: "… was watched".

        Raises:
            NodeClosed: the node was closed.
            JazzError: the error that ended it.
        """
        if isinstance(self._end, NodeClosed):
            raise NodeClosed(f"the node was closed while {doing}")
        if self._end is not None:
            raise self._end

    @property
    def count(self) -> int:
        """The number of subscribed iterators and callbacks."""
        return sum(map(len, self._iterators.values())) + sum(map(len, self._callbacks.values()))

    def add(self, co_id: CoId, watch: Wakeable) -> None:
        """Subscribe an iterator; only a weak reference is kept."""
        self._iterators.setdefault(co_id, WeakSet()).add(watch)
        if len(self._iterators) > self._prune_beyond:
            self._iterators = {watched: watches for watched, watches in self._iterators.items() if watches}
            self._prune_beyond = max(_PRUNE_BEYOND, 2 * len(self._iterators))

    def discard(self, co_id: CoId, watch: Wakeable) -> None:
        """Unsubscribe an iterator."""
        watches = self._iterators.get(co_id)
        if watches is not None:
            watches.discard(watch)
            if not watches:
                del self._iterators[co_id]

    def add_callback(self, value: T, callback: Callable[[T], None]) -> Callable[[], None]:
        """Subscribe a callback; return a function that unsubscribes it."""
        entry = _Callback(value, callback, self._callbacks)
        self._callbacks.setdefault(value.id, []).append(entry)
        return entry.unsubscribe

    def mark(self, co_id: CoId) -> bool:
        """Note that a value may have changed; return whether it has subscribers, so that `wake` must follow."""
        if co_id not in self._iterators and co_id not in self._callbacks:
            return False
        self._changed[co_id] = None
        return True

    def wake(self) -> bool:
        """Notify the subscribers of all marked values; return whether there were any.

        An error in a callback is passed to the event loop's exception handler.
        """
        changed, self._changed = self._changed, {}
        for co_id in changed:
            for watch in list(self._iterators.get(co_id, ())):
                watch._wake()
            for entry in list(self._callbacks.get(co_id, ())):
                revision = entry.value._refresh()
                if revision != entry.revision and entry in self._callbacks.get(co_id, ()):
                    entry.revision = revision
                    entry.call()
        return bool(changed)

    def close(self, end: JazzError) -> None:
        """End all iterators with an error, and drop the callbacks."""
        self._end = end
        self._callbacks.clear()
        for watches in list(self._iterators.values()):
            for watch in list(watches):
                watch._wake()
