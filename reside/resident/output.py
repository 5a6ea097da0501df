"""Text of a command as pulumi's own command gives it: whole lines, without white space at their ends."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pulumi.automation import OnOutput


class Lines:
    """Cuts one stream into lines and hands each to a callback.

    A callback that raises is not called again; its error is kept in ``failure``, since the command goes on whoever
    watches it.
    """

    def __init__(self, receive: OnOutput | None) -> None:
        self._receive = receive
        self._decoder = io.IncrementalNewlineDecoder(None, translate=True)  # text mode's: \r and \r\n end lines too
        self._rest: list[str] = []
        self._whole: list[str] = []
        self.failure: Exception | None = None

    def feed(self, piece: str) -> None:
        """Take a piece of the stream."""
        self._take(self._decoder.decode(piece))

    def end(self) -> str:
        """The stream has ended: the last line need not be whole. Returns all lines."""
        self._take(self._decoder.decode("", final=True))
        if any(self._rest):
            self._line("".join(self._rest))
            self._rest = []
        return "\n".join(self._whole)

    def _take(self, text: str) -> None:
        first, *others = text.split("\n")
        self._rest.append(first)
        if others:
            whole = ["".join(self._rest), *others[:-1]]
            self._rest = others[-1:]
            for line in whole:
                self._line(line)

    def _line(self, line: str) -> None:
        stripped = line.rstrip()
        self._whole.append(stripped)
        if self._receive is None or self.failure is not None:
            return
        try:
            self._receive(stripped)
        except Exception as error:  # noqa: BLE001 - it is the caller's, and raised to the caller when the command ended
            self.failure = error
