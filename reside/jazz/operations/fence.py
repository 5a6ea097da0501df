"""Fences: checks before each write of a task, for writers that hold a lock.

A lock can be lost between two writes, for example while the process is stopped. A check that runs before each of them
refuses those that come too late. A fence applies to the task that enters it and to the tasks that it starts.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

_CHECKS: Final[ContextVar[tuple[Callable[[], None], ...]]] = ContextVar("reside.jazz.fences", default=())


@contextmanager
def fenced_writes(check: Callable[[], None]) -> Iterator[None]:
    """Call `check` before each write while the block is open; the write does not happen if it raises.

    Fences may be nested: all checks run, the outermost first.

    Args:
        check: a synchronous function, such as one that compares the time with the end of a lease.
    """
    token = _CHECKS.set((*_CHECKS.get(), check))
    try:
        yield
    finally:
        _CHECKS.reset(token)


def check_fences() -> None:
    """Raise the error of the first fence of this task that refuses writes."""
    for check in _CHECKS.get():
        check()
