"""Files, like `co.fileStream` in jazz-tools."""

from typing import ClassVar

from reside.jazz.typed.base import TypedValue
from reside.jazz.typed.creating import WriteTarget
from reside.jazz.typed.errors import SchemaError
from reside.jazz.values.owned import OwnedValue
from reside.jazz.values.stream import FileStream
from reside.jazz.values.streamview import FileInfo
from reside.jazz.wire.header import ValueType


class File(TypedValue):
    """A file in a field: `File(data, mime_type="image/png")` is a draft, `await file.read()` waits for its end.

    `raw` is the stream, which can be read while it is being written.

    Args:
        data: the content.
        mime_type: for example `image/png`.
        name: the file's name.
    """

    _value_class: ClassVar[type[OwnedValue]] = FileStream
    _value_type: ClassVar[ValueType] = "costream"

    def __init__(self, data: bytes, *, mime_type: str = "application/octet-stream", name: str | None = None) -> None:
        self._draft = (data, mime_type, name)

    @property
    def stream(self) -> FileStream:
        """The untyped value."""
        stream: FileStream = self.raw
        return stream

    @property
    def info(self) -> FileInfo | None:
        """The writer's description; None if the file was not started."""
        if self._value is None:
            data, mime_type, name = self._draft
            return FileInfo(mime_type, name, len(data))
        return self.stream.info

    async def read(self, *, timeout: float = 30.0, max_bytes: int | None = None) -> bytes:  # noqa: ASYNC109 - as Node.load
        """Wait for the whole file and return all bytes.

        Args:
            timeout: in seconds.
            max_bytes: maximum size; a larger file is refused.

        Raises:
            InvalidContent: it is larger, or malformed.
            JazzTimeout: its writer did not end it in time.
        """
        if self._value is None:
            return self._draft[0]
        await self.stream.until_finished(timeout=timeout, max_bytes=max_bytes)
        return b"".join([part async for part in self.stream.chunks()])

    def _write_draft(self, target: WriteTarget) -> OwnedValue:
        """See `TypedValue`."""
        if target.unique is not None:
            raise SchemaError("files can't be unique: put the file into a unique map")
        data, mime_type, name = self._draft
        self._draft = (b"", mime_type, name)
        return target.owner.create_file(data, mime_type=mime_type, name=name)
