"""A subscription that only wakes, for readers that process a value's changes piece by piece."""

import asyncio
from types import TracebackType
from typing import Self

from reside.jazz.events.watch import Watches
from reside.jazz.ids import CoId


class Wakeup:
    """Wakes its owner after changes of a value, without reading the value. Use it as a context manager."""

    def __init__(self, co_id: CoId, watches: Watches) -> None:
        self._co_id = co_id
        self._watches = watches
        self._woken = asyncio.Event()

    def __enter__(self) -> Self:
        self._watches.add(self._co_id, self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._watches.discard(self._co_id, self)

    async def wait(self) -> None:
        """Wait until the value may have changed since the last call.

        Raises:
            NodeClosed: the node was closed, so there will be no more changes.
            StoreFailed: the local store ended the node.
        """
        doing = f"{self._co_id} was read"
        self._watches.check_open(doing)
        await self._woken.wait()
        self._woken.clear()
        self._watches.check_open(doing)

    def _wake(self) -> None:
        self._woken.set()
