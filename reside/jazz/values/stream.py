"""FileStream: a file, written as description, chunks of bytes, and end (docs/jazz-protocol.md, section 7).

Readers may start before the writer has ended. Usually one session writes a file. If several did, the session that
started first comes first, so that all readers see the same bytes.
"""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator
from typing import ClassVar, Final

from reside.jazz.errors import InvalidContent, InvalidState, JazzTimeout, ValueDeleted
from reside.jazz.events.wakeup import Wakeup
from reside.jazz.memory.covalue import Core
from reside.jazz.values.host import Host
from reside.jazz.values.owned import OwnedValue
from reside.jazz.values.streamview import PREFIX, Chunk, FileInfo, StreamView
from reside.jazz.wire.encoding import b64encode

_CHUNK_BYTES: Final = 102_400
"""The chunk size of the JavaScript library; one transaction contains one chunk."""
_CHUNKS_IN_FLIGHT: Final = 40
_CHARACTERS_AT_ONCE: Final = 4 * 136_600
"""Decrypted at once when a file is read piece by piece: some chunks, which take a few milliseconds."""


class FileStream(OwnedValue):
    """A file."""

    kind: ClassVar[str] = "file"

    def __init__(self, host: Host, core: Core) -> None:
        self._view = StreamView()
        super().__init__(host, core, self._view)

    @property
    def info(self) -> FileInfo | None:
        """The writer's description; None if the file was not started."""
        return self._fresh().info

    @property
    def finished(self) -> bool:
        """Whether the writer has ended the file, and all of it was received."""
        return self._fresh().ended

    @property
    def received(self) -> int:
        """Number of bytes received."""
        return self._fresh().size

    def read(self) -> bytes:
        """Return all bytes.

        Raises:
            InvalidState: the writer has not ended it yet, or never started it.
            InvalidContent: the writer declared another size.
        """
        view = self._fresh()
        if not view.ended or view.info is None:
            raise InvalidState(f"the file {self.id} is not finished; await node.load_file(…) waits for its end")
        data = b"".join(self._bytes_of(chunk) for chunk in view.chunks)
        self._check_size(len(data))
        return data

    async def until_finished(self, *, timeout: float = 30.0, max_bytes: int | None = None) -> None:  # noqa: ASYNC109 - raises our own error
        """Wait until the whole file was received.

        Args:
            timeout: in seconds.
            max_bytes: maximum size; a larger file is refused.

        Raises:
            InvalidContent: it is larger than `max_bytes`.
            ValueDeleted: it was deleted.
            JazzTimeout: its writer did not end it in time.
        """
        try:
            async with asyncio.timeout(timeout):
                async for view in self._advances():
                    self._check_limit(view, max_bytes)
                    if view.ended:
                        return
        except TimeoutError:
            raise JazzTimeout(f"the file {self.id} was not finished by its writer within {timeout:g} s") from None

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the bytes in chunks as they arrive, until the file ends.

        Raises:
            InvalidState: bytes that were already yielded no longer count, because their writer lost the right to
                write at that time; or the size differs from the declared one; or a chunk is malformed.
            ValueDeleted: it was deleted during the iteration.
            NodeClosed: the node was closed before the end.
        """
        read: list[Chunk] = []
        total = 0
        version = self._view.version
        async for view in self._advances():
            while True:
                if version != view.version:
                    self._check_read(read)
                    version = view.version
                if len(read) == len(view.chunks):
                    break
                chunk = view.chunks[len(read)]
                data = self._bytes_of(chunk)
                read.append(chunk)
                total += len(data)
                yield data
                await asyncio.sleep(0)  # other tasks run between the chunks of a file that is complete
            if view.ended:
                self._check_size(total)
                return

    def _start(self, mime_type: str, *, name: str | None = None, size: int | None = None) -> None:
        """Write the description; chunks and the end follow.

        Raises:
            NotPermitted: this account may not write here.
            InvalidState: it was already started.
        """
        if self.info is not None:
            raise InvalidState(f"the file {self.id} was started already; a new one needs a new value")
        description = {"mimeType": mime_type, "fileName": name, "totalSizeBytes": size}
        self._write([{"type": "start", **{key: value for key, value in description.items() if value is not None}}])

    def push(self, data: bytes) -> None:
        """Write bytes, in chunks of at most 100 KiB.

        Raises:
            NotPermitted: this account may not write here.
            InvalidState: it was not started, or was already ended.
        """
        if self.info is None or self.finished:
            state = "was ended already" if self.finished else "was not started"
            raise InvalidState(f"the file {self.id} {state}; nothing can be added to it")
        for begin in range(0, len(data), _CHUNK_BYTES):
            chunk = PREFIX + b64encode(data[begin : begin + _CHUNK_BYTES])
            self._write([{"type": "chunk", "chunk": chunk}])

    async def push_all(self, source: AsyncIterable[bytes]) -> None:
        """Write everything that a source yields, and end the file.

        It is never more than 4 MB ahead of the server.

        Raises:
            NotPermitted: this account may not write here.
            InvalidState: it was not started, or was already ended.
            JazzTimeout: the server did not acknowledge in time; everything read from the source so far is written.
        """
        waiting = bytearray()
        pushed = 0
        async for data in source:
            waiting += data
            while len(waiting) >= _CHUNK_BYTES:
                self.push(bytes(waiting[:_CHUNK_BYTES]))
                del waiting[:_CHUNK_BYTES]
                pushed += 1
                if pushed % _CHUNKS_IN_FLIGHT == 0:
                    await self.uploaded()
                else:
                    await asyncio.sleep(0)  # let other tasks run
        self.push(bytes(waiting))
        self.end()

    def end(self) -> None:
        """Write the end.

        Raises:
            NotPermitted: this account may not write here.
            InvalidState: it was not started.
            InvalidContent: its size differs from the size declared at the start.
        """
        info = self.info
        if info is None:
            raise InvalidState(f"the file {self.id} was not started; there is nothing to end")
        if self.finished:
            return
        self._check_size(self.received)
        self._write([{"type": "end"}])

    async def _advances(self) -> AsyncIterator[StreamView]:
        """Yield the view now and after each change of it, while other tasks run.

        Raises:
            ValueDeleted: the value was deleted.
            NodeClosed: the node was closed.
        """
        with Wakeup(self.id, self._host.watches) as wakeup:
            while True:
                if self.deleted:
                    raise ValueDeleted(self.id)
                self._content.refresh(_CHARACTERS_AT_ONCE)
                yield self._view
                if self._core.stale:
                    await asyncio.sleep(0)
                else:
                    await wakeup.wait()

    def _fresh(self) -> StreamView:
        if self._core.stale:
            self._refresh()
        return self._view

    def _bytes_of(self, chunk: Chunk) -> bytes:
        try:
            return chunk.read()
        except InvalidContent:
            raise InvalidContent(f"a chunk of the file {self.id} is malformed") from None

    def _check_read(self, read: list[Chunk]) -> None:
        if self._view.chunks[: len(read)] != read:
            raise InvalidState(f"the beginning of the file {self.id} changed while it was read: read it again")

    def _check_limit(self, view: StreamView, max_bytes: int | None) -> None:
        size = max(view.size, (view.info.size or 0) if view.info is not None else 0)
        if max_bytes is not None and size > max_bytes:
            raise InvalidContent(f"the file {self.id} has {size} bytes, more than the limit of {max_bytes}")

    def _check_size(self, size: int) -> None:
        info = self._view.info
        if info is not None and info.size is not None and info.size != size:
            raise InvalidContent(f"the file {self.id} has {size} bytes, but its writer declared {info.size}")
