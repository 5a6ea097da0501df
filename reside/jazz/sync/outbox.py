"""The outgoing messages of a connection: joins small messages to frames, and blocks writers that are too fast."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

Check: TypeAlias = Callable[[], bool]

MAX_FRAME_CHARACTERS: Final = 25_000
"""Messages are joined up to this length, as in the JavaScript client; a longer message is a frame of its own."""
MAX_BUFFERED_CHARACTERS: Final = 100_000
"""With more than this queued, `Outbox.room` blocks."""


class _Message(NamedTuple):
    text: str
    may_send: Check | None = None


class Outbox:
    """The queue of one connection's outgoing messages, in order except for those with low priority.

    A message may have a check. It is called when the frame is complete, so nothing but the write to the socket comes
    after it: a process that is stopped in between, and continues later, must not send what a fence refuses by then.

    Attributes:
        buffered: the number of queued characters.
    """

    def __init__(self) -> None:
        self._messages: deque[_Message] = deque()
        self._last: deque[_Message] = deque()
        self._room = asyncio.Event()
        self._room.set()
        self.buffered = 0

    def put(self, text: str, may_send: Check | None = None, *, last: bool = False) -> None:
        """Queue a message.

        Args:
            text: the message.
            may_send: returns whether it may still be sent; None: it always may.
            last: send it after all others.
        """
        (self._last if last else self._messages).append(_Message(text, may_send))
        self.buffered += len(text)
        if self.buffered > MAX_BUFFERED_CHARACTERS:
            self._room.clear()

    def frame(self) -> str | None:
        """Return the next frame; None if there is nothing to send.

        If a message may not be sent any more, it and all that is queued is dropped.
        """
        messages: list[_Message] = []
        size = 0
        while queue := self._messages or self._last:
            if messages and size + len(queue[0].text) >= MAX_FRAME_CHARACTERS:
                break
            messages.append(queue.popleft())
            size += len(messages[-1].text) + 1
        if not messages:
            return None
        self._taken(sum(len(message.text) for message in messages))
        frame = "\n".join([message.text for message in messages])
        if all(message.may_send() for message in messages if message.may_send is not None):
            return frame
        self.take_all()
        return None

    def take_all(self) -> list[str]:
        """Empty the queue when a connection ends; the next one starts from the server's known state."""
        messages = [message.text for message in (*self._messages, *self._last)]
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
