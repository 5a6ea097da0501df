"""The base class of all loaded values: identity and watching."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import ClassVar, Final, Self

from reside.jazz.events.watch import Watch
from reside.jazz.ids import CoId
from reside.jazz.memory.covalue import Core, own
from reside.jazz.values.host import Host

_NOTHING: Final[Mapping[str, "Value"]] = MappingProxyType({})
"""Shared by all values that hold no other."""


class Value:
    """A value of a node. There is one object for each id and node.

    Reads are synchronous and return only validated content. Use it on the event loop of its node.
    """

    kind: ClassVar[str] = "value"

    def __init__(self, host: Host, core: Core) -> None:
        self._host = host
        self._core = core
        self._holds = _NOTHING

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._core.co_id}>"

    @property
    def id(self) -> CoId:
        """The value's id."""
        return self._core.co_id

    def _refresh(self) -> int:
        """Update the content; return a number that grows with every change of the valid content."""
        self._core.stale = False
        return self._core.revision

    def _hold(self, place: str, value: "Value") -> None:
        """Keep another value in memory as long as this value refers to it at a position."""
        self._holds = holds = own(self._holds)
        holds[place] = value

    async def uploaded(self, *, timeout: float = 30.0) -> None:  # noqa: ASYNC109 - raises our own error
        """Wait until the server acknowledged everything written here to this value so far.

        Args:
            timeout: in seconds.

        Raises:
            JazzTimeout: it did not acknowledge in time; the writes stay queued.
        """
        await self._host.uploaded(self._core, timeout)

    def watch(self) -> Watch[Self]:
        """Yield this value immediately, and again after each change of its valid content.

        A slow consumer gets the latest state, never a backlog. As an async context manager, it unsubscribes at the end
        of the block; otherwise when the iterator is dropped::

            async with value.watch() as changes:
                async for value in changes:
                    ...
        """
        return Watch(self, self._host.watches)

    def on_change(self, callback: Callable[[Self], None]) -> Callable[[], None]:
        """Call a function on the event loop after each change of the valid content.

        Returns:
            a function that unsubscribes it.
        """
        return self._host.watches.add_callback(self, callback)
