"""The bodies of calls in memory.

A caller is known only once its whole body is there, because the token is for this body. So anybody can send one. Each
body has a maximum length and a time in which it must arrive, and all that are in memory at once have a maximum length
together. A body counts until its call is answered. If there is no room, the one that has been arriving for the longest
time is dropped: so slow bodies can't keep out those that are sent at once.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from starlette.requests import ClientDisconnect

from reside.model.errors import InvalidInput, NotReady

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.requests import Request

MAX_BODY_BYTES: Final = 1 << 20
MAX_BODIES_BYTES: Final = 32 << 20
"""Of all bodies that are in memory at once."""
BODY_WITHIN_S: Final = 60.0
"""Seconds in which a body must arrive."""
_NO_ROOM: Final = "too many calls arrive at once: try again"


@dataclass(eq=False)
class _Arriving:
    """A body of which a part is missing."""

    content: bytearray
    until: asyncio.Timeout
    is_dropped: bool = False


class Bodies:
    """The bodies that are in memory now.

    Args:
        most: bytes of all of them.
        within_s: seconds in which a body must arrive.
    """

    def __init__(self, most: int = MAX_BODIES_BYTES, within_s: float = BODY_WITHIN_S) -> None:
        self._most = most
        self._within_s = within_s
        self._arriving: dict[_Arriving, None] = {}  # the oldest first
        self.held = 0
        """Bytes in memory."""

    @asynccontextmanager
    async def read(self, request: Request) -> AsyncIterator[bytes]:
        """Yield the body of a request; it counts until the block ends.

        Raises:
            InvalidInput: it is too long, did not arrive in time, or the caller left before its end.
            NotReady: there are too many bodies in memory.
        """
        content = bytearray()
        try:
            await self._receive(request, content)
            yield bytes(content)
        finally:
            self.held -= len(content)

    async def _receive(self, request: Request, content: bytearray) -> None:
        arriving: _Arriving | None = None
        try:
            async with asyncio.timeout(self._within_s) as until:
                arriving = _Arriving(content, until)
                self._arriving[arriving] = None
                async for chunk in request.stream():
                    self._add(arriving, chunk)
        except ClientDisconnect:
            raise InvalidInput("the caller left before the end of the body") from None
        except TimeoutError:
            if arriving is not None and arriving.is_dropped:
                raise NotReady(_NO_ROOM) from None
            raise InvalidInput(f"the body did not arrive within {self._within_s:g} s: send it at once") from None
        finally:
            if arriving is not None:
                self._arriving.pop(arriving, None)

    def _add(self, arriving: _Arriving, chunk: bytes) -> None:
        if arriving.is_dropped:
            raise NotReady(_NO_ROOM)
        arriving.content += chunk
        self.held += len(chunk)
        if len(arriving.content) > MAX_BODY_BYTES:
            raise InvalidInput(f"the body is longer than {MAX_BODY_BYTES} bytes")
        while self.held > self._most:
            oldest = next(iter(self._arriving))
            if oldest is arriving:
                raise NotReady(_NO_ROOM)
            self._drop(oldest)

    def _drop(self, arriving: _Arriving) -> None:
        del self._arriving[arriving]
        self.held -= len(arriving.content)
        arriving.content.clear()
        arriving.is_dropped = True
        arriving.until.reschedule(asyncio.get_running_loop().time())
