"""Fences: checks before each write of a task, for writers that hold a lock.

A lock can be lost between two writes, for example while the process is stopped. A check that runs before each of them
refuses those that come too late. A fence applies to the task that enters it and to the tasks that it starts.

A write that was made in time can still be sent too late: the process may be stopped, or without a connection, between
the write and its sending. So the checks run again before the write is signed (`Exchange.may_send`), and when the frame
that contains it is complete, before it is written to the socket (`Outbox.frame`). What is left is the time between that
check and the system call, some tens of microseconds, which no sender can close. It is longer while the buffers of the
connection are full: the transport keeps what the kernel does not accept.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, TypeAlias

Checks: TypeAlias = tuple[Callable[[], None], ...]
_CHECKS: Final[ContextVar[Checks]] = ContextVar("reside.jazz.fences", default=())


@contextmanager
def fenced_writes(check: Callable[[], None]) -> Iterator[None]:
    """Call `check` before each write while the block is open; the write does not happen if it raises.

    It is called again before the writes are sent, which may be after the block. If it raises then, the node ends: what
    it has in memory must not reach the server any more.

    Fences may be nested: all checks run, the outermost first.

    Args:
        check: a synchronous function, such as one that compares the time with the end of a lease.
    """
    token = _CHECKS.set((*_CHECKS.get(), check))
    try:
        yield
    finally:
        _CHECKS.reset(token)


@contextmanager
def unfenced_writes() -> Iterator[None]:
    """Write without the fences of this task while the block is open, for what the node notes on its own behalf."""
    token = _CHECKS.set(())
    try:
        yield
    finally:
        _CHECKS.reset(token)


def check_fences() -> Checks:
    """Raise the error of the first fence of this task that refuses writes; return all of its checks."""
    checks = _CHECKS.get()
    for check in checks:
        check()
    return checks
