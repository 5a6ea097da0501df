"""Show what is being built and the remaining time: one line, which a terminal shows again every second."""

import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

_TERMINAL_SECONDS = 1.0
_LOG_SECONDS = 30.0
_NAME_WIDTH = 24
_MINUTE = 60


@dataclass
class Outcome:
    """How an item ended.

    Args:
        result: one or two words.
        reason: words that follow them.
    """

    result: str = "built"
    reason: str = ""


@dataclass
class Progress:
    """The progress lines that one run prints. They go to stderr, because stdout is for results.

    Args:
        remaining: returns the remaining time in words, from the seconds since the start.
        times: name, result and seconds of every item so far.
    """

    remaining: Callable[[float], str]
    times: list[tuple[str, str, float]] = field(default_factory=list)
    _began: float = field(default_factory=time.monotonic)
    _words: dict[str, str] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def item(self, name: str, reason: str) -> Iterator[Outcome]:
        """Show one item while it is being built or fetched; several threads may call this."""
        began = time.monotonic()
        self._line(f"{name:<{_NAME_WIDTH}} {reason}", final=True)
        outcome, result = Outcome(), "failed"
        try:
            with self.doing(name, reason):
                yield outcome
            result = outcome.result
        finally:
            seconds = time.monotonic() - began
            with self._lock:
                self.times.append((name, result, seconds))
            self._line(f"{name:<{_NAME_WIDTH}} {result}{outcome.reason}, {seconds:.0f} s", final=True)

    @contextmanager
    def doing(self, name: str, words: str) -> Iterator[None]:
        """Show an item in the line about all items while the block runs."""
        self.describe(name, words)
        try:
            yield
        finally:
            with self._lock:
                del self._words[name]

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show the line about all items at intervals while the block runs."""
        ended = threading.Event()
        ticker = threading.Thread(target=self._tick, args=(ended,), daemon=True)
        ticker.start()
        try:
            yield
        finally:
            ended.set()
            ticker.join()

    def describe(self, name: str, words: str) -> None:
        """Set the text for an item in the line about all items."""
        with self._lock:
            self._words[name] = words

    def say(self, text: str) -> None:
        """Print a line that stays."""
        self._line(text, final=True)

    def skip(self, name: str, why: str) -> None:
        """Note an item that need not be built."""
        self.times.append((name, why, 0.0))

    def table(self) -> str:
        """Return the table of all items and their durations, some of which overlap."""
        lines = [f"  {name:<{_NAME_WIDTH}} {what:<28} {seconds:7.1f} s" for name, what, seconds in self.times]
        return "\n".join([*lines, f"  {'total':<{_NAME_WIDTH}} {'':<28} {time.monotonic() - self._began:7.1f} s"])

    def status(self) -> str:
        """Return the line about all items."""
        elapsed = time.monotonic() - self._began
        minutes, seconds = divmod(int(elapsed), _MINUTE)
        with self._lock:
            items = "; ".join(f"{name}: {words}" for name, words in self._words.items())
        return f"{minutes}:{seconds:02}  {self.remaining(elapsed)}  {items}"

    def _tick(self, ended: threading.Event) -> None:
        pause = _TERMINAL_SECONDS if sys.stderr.isatty() else _LOG_SECONDS
        while not ended.wait(pause):
            self._line(self.status(), final=False)

    def _line(self, text: str, *, final: bool) -> None:
        with self._lock:  # of several threads
            if not sys.stderr.isatty():
                print(text, file=sys.stderr, flush=True)
                return
            width = shutil.get_terminal_size().columns - 1
            print(f"\r\033[K{text[:width]}", end="\n" if final else "", file=sys.stderr, flush=True)
