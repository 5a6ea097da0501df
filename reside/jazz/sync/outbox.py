"""The outgoing messages of a connection: joins small messages to frames, and blocks writers that are too fast."""

import asyncio
from collections import deque
from typing import Final

MAX_FRAME_CHARACTERS: Final = 25_000
"""Messages are joined up to this length, as in the JavaScript client; a longer message is a frame of its own."""
MAX_BUFFERED_CHARACTERS: Final = 100_000
"""With more than this queued, `Outbox.room` blocks."""


class Outbox:
    """The queue of one connection's outgoing messages, in order except for those with low priority.

    Attributes:
        buffered: the number of queued characters.
    """

    def __init__(self) -> None:
        self._messages: deque[str] = deque()
        self._last: deque[str] = deque()
        self._room = asyncio.Event()
        self._room.set()
        self.buffered = 0

    def put(self, text: str, *, last: bool = False) -> None:
        """Queue a message; with `last`, send it after all others."""
        (self._last if last else self._messages).append(text)
        self.buffered += len(text)
        if self.buffered > MAX_BUFFERED_CHARACTERS:
            self._room.clear()

    def frame(self) -> str | None:
        """Return the next frame; None if there is nothing to send."""
        messages: list[str] = []
        size = 0
        while queue := self._messages or self._last:
            if messages and size + len(queue[0]) >= MAX_FRAME_CHARACTERS:
                break
            messages.append(queue.popleft())
            size += len(messages[-1]) + 1
        if not messages:
            return None
        self._taken(sum(map(len, messages)))
        return "\n".join(messages)

    def take_all(self) -> list[str]:
        """Empty the queue when a connection ends; the next one starts from the server's known state."""
        messages = [*self._messages, *self._last]
        self._messages.clear()
        self._last.clear()
        self._taken(self.buffered)
        return messages

    async def room(self) -> None:
        """Wait until there is room for more messages."""
        await self._room.wait()

    def _taken(self, characters: int) -> None:
        self.buffered -= characters
        if self.buffered <= MAX_BUFFERED_CHARACTERS:
            self._room.set()
