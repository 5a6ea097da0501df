"""Shows what is being built and for how long: one line an item, on a terminal rewritten every second."""

import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

_TERMINAL_SECONDS = 1.0
_LOG_SECONDS = 30.0
_NAME_WIDTH = 24


@dataclass
class Progress:
    """The lines of one run. They go to stderr, since stdout is for results.

    Args:
        times: Name, result and seconds of every item so far.
    """

    times: list[tuple[str, str, float]] = field(default_factory=list)
    _words: str = ""

    @contextmanager
    def item(self, name: str, reason: str) -> Iterator[None]:
        """Show one item while it is being made."""
        began = time.monotonic()
        self.tell(reason)
        print(f"{name:<{_NAME_WIDTH}} {reason}", file=sys.stderr, flush=True)
        ended = threading.Event()
        ticker = threading.Thread(target=self._tick, args=(name, began, ended), daemon=True)
        ticker.start()
        result = "failed"
        try:
            yield
            result = "built"
        finally:
            ended.set()
            ticker.join()
            seconds = time.monotonic() - began
            self._line(f"{name:<{_NAME_WIDTH}} {result}, {seconds:.0f} s", final=True)
            self.times.append((name, result, seconds))

    def tell(self, words: str) -> None:
        """Say what is being done for the present item."""
        self._words = words

    def skip(self, name: str, why: str) -> None:
        """Note an item that need not be made."""
        self.times.append((name, why, 0.0))

    def table(self) -> str:
        """Return the table of all items and their times."""
        lines = [f"  {name:<{_NAME_WIDTH}} {what:<28} {seconds:7.1f} s" for name, what, seconds in self.times]
        total = sum(seconds for _, _, seconds in self.times)
        return "\n".join([*lines, f"  {'all':<{_NAME_WIDTH}} {'':<28} {total:7.1f} s"])

    def _tick(self, name: str, began: float, ended: threading.Event) -> None:
        pause = _TERMINAL_SECONDS if sys.stderr.isatty() else _LOG_SECONDS
        while not ended.wait(pause):
            self._line(f"{name:<{_NAME_WIDTH}} {time.monotonic() - began:.0f} s  {self._words}", final=False)

    @staticmethod
    def _line(text: str, *, final: bool) -> None:
        if not sys.stderr.isatty():
            print(text, file=sys.stderr, flush=True)
            return
        width = shutil.get_terminal_size().columns - 1
        print(f"\r\033[K{text[:width]}", end="\n" if final else "", file=sys.stderr, flush=True)
