"""Splits the output of a command into lines without trailing white space, as `PulumiCommand` does."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pulumi.automation import OnOutput


class Output(NamedTuple):
    """What a command wrote, and its exit code. Negative is the signal that ended it."""

    stdout: str
    stderr: str
    code: int


class Lines:
    """A splitter of one stream into lines, each of which it passes to a callback.

    A callback that raises is not called again, and the command continues.

    Attributes:
        failure: the error that the callback raised; None if it raised none.
    """

    def __init__(self, receive: OnOutput | None) -> None:
        self._receive = receive
        self._decoder = io.IncrementalNewlineDecoder(None, translate=True)  # as text mode: \r and \r\n end a line, too
        self._incomplete: list[str] = []
        self._complete: list[str] = []
        self.failure: Exception | None = None

    def feed(self, piece: str) -> None:
        """Process a piece of the stream."""
        self._take(self._decoder.decode(piece))

    def end(self) -> str:
        """Process the end of the stream, where the last line may be incomplete; return all lines."""
        self._take(self._decoder.decode("", final=True))
        if any(self._incomplete):
            self._line("".join(self._incomplete))
            self._incomplete = []
        return "\n".join(self._complete)

    def _take(self, text: str) -> None:
        first, *others = text.split("\n")
        self._incomplete.append(first)
        if others:
            complete = ["".join(self._incomplete), *others[:-1]]
            self._incomplete = others[-1:]
            for line in complete:
                self._line(line)

    def _line(self, line: str) -> None:
        stripped = line.rstrip()
        self._complete.append(stripped)
        if self._receive is None or self.failure is not None:
            return
        try:
            self._receive(stripped)
        except Exception as error:  # noqa: BLE001 - the caller's own error; raised to the caller when the command has ended
            self.failure = error
