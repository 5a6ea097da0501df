"""Watching of a value and what it refers to: an iterator without a queue that reads the current state."""

import asyncio
from types import TracebackType
from typing import Generic, Self, TypeVar

from reside.jazz.ids import CoId
from reside.jazz.typed.loading import load_tree
from reside.jazz.typed.resolving import Spec
from reside.jazz.typed.views import View
from reside.jazz.values.host import Host
from reside.jazz.values.value import Value

T = TypeVar("T", bound=View)


class DeepWatch(Generic[T]):
    """An async iterator over the states of a value and of everything that a resolve names below it.

    It follows references that change: their new values are loaded before the next state is yielded.
    """

    def __init__(self, host: Host, model: type[T], co_id: str, spec: Spec) -> None:
        self._host = host
        self._model = model
        self._co_id = co_id
        self._spec = spec
        self._watched: dict[CoId, Value] = {}
        self._last: dict[CoId, int] | None = None
        self._woken = asyncio.Event()
        self._woken.set()
        self._closed = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        """Return the value when any part of it differs from the last state returned.

        Raises:
            NodeClosed: the node was closed, so no further change can arrive.
            JazzError: the value, or one that it refers to, can't be loaded; see `TypedValue.load`. The next iteration
                tries again.
        """
        while True:
            await self._woken.wait()
            if self._closed:
                raise StopAsyncIteration
            self._host.watches.check_open(f"{self._co_id} was watched")
            self._woken.clear()
            try:
                tree = await load_tree(self._host, self._model, self._co_id, self._spec)
            except BaseException:
                self._woken.set()
                raise
            self._follow(tree.values)
            state = {co_id: value._refresh() for co_id, value in tree.values.items()}
            if state != self._last:
                self._last = state
                return tree.root

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Unsubscribe; a waiting iteration ends."""
        self._closed = True
        self._follow({})
        self._woken.set()

    def _wake(self) -> None:
        """Make the iterator check the state again."""
        self._woken.set()

    def _follow(self, values: dict[CoId, Value]) -> None:
        """Watch exactly these values."""
        if self._closed:
            values = {}
        for co_id in self._watched.keys() - values.keys():
            self._host.watches.discard(co_id, self)
        for co_id in values.keys() - self._watched.keys():
            self._host.watches.add(co_id, self)
        self._watched = values
