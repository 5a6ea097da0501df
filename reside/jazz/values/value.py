"""What all loaded values have in common: identity, and being watched."""

from collections.abc import Callable
from typing import ClassVar, Self

from reside.jazz.events.watch import Watch
from reside.jazz.ids import CoId
from reside.jazz.memory.covalue import Core
from reside.jazz.values.host import Host


class Value:
    """A value of a node; there is one object of this class for each id and node.

    Reads are synchronous and give validated content only. Use it on the event loop of its node.
    """

    kind: ClassVar[str] = "value"

    def __init__(self, host: Host, core: Core) -> None:
        self._host = host
        self._core = core
        self._holds: dict[str, Value] = {}

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._core.co_id}>"

    @property
    def id(self) -> CoId:
        """The value's id."""
        return self._core.co_id

    def _refresh(self) -> int:
        """Brings the content up to date; the number it gives grows with every change of the valid content."""
        self._core.stale = False
        return self._core.revision

    def _hold(self, place: str, value: "Value") -> None:
        """Keeps another value in memory for as long as this one refers to it at a place."""
        self._holds[place] = value

    async def uploaded(self, *, timeout: float = 30.0) -> None:  # noqa: ASYNC109 - raises our own error
        """Waits until the server acknowledged everything written here to this value so far.

        Args:
            timeout: In seconds.

        Raises:
            JazzTimeout: It did not in time; the writes stay queued.
        """
        await self._host.uploaded(self._core, timeout)

    def watch(self) -> Watch[Self]:
        """Yields this value at once, and again after each change of its valid content.

        A slow consumer sees the latest state, never a backlog. Used as an async context manager, it is unsubscribed at
        the end of the block; without one, when the iterator is dropped::

            async with value.watch() as changes:
                async for value in changes:
                    ...
        """
        return Watch(self, self._host.watches)

    def on_change(self, callback: Callable[[Self], None]) -> Callable[[], None]:
        """Calls back on the event loop after each change of the valid content; call what it gives to unsubscribe."""
        return self._host.watches.add_callback(self, callback)
