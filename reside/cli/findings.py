"""Checks that run at the same time, each with a deadline, and what they find."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from reside.cli.explanations import causes
from reside.cli.main import expected_errors, one_line

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

T = TypeVar("T")
Status = Literal["ok", "warning", "failed"]


@dataclass(frozen=True)
class Finding:
    """What a check has found.

    Attributes:
        check: name of the check.
        what: what is so, or is wrong.
        cure: what to do; empty if nothing is to be done, or `what` says it.
    """

    status: Status
    check: str
    what: str
    cure: str = ""

    def document(self) -> dict[str, Any]:
        """Return the JSON form."""
        return asdict(self)


@dataclass(frozen=True)
class Check:
    """A check: its name, and the function that makes the finding."""

    name: str
    run: Callable[[], Awaitable[Finding]]


async def examine(checks: Sequence[Check], deadline_s: float) -> list[Finding]:
    """Run all checks at the same time; return what each has found, in their order.

    A check that raises an error, or has not ended after `deadline_s`, has failed; the others go on.
    """
    return list(await asyncio.gather(*(_finding(check, deadline_s) for check in checks)))


async def _finding(check: Check, deadline_s: float) -> Finding:
    try:
        async with asyncio.timeout(deadline_s):
            return await check.run()
    except TimeoutError:
        return late(check.name, deadline_s)
    except Exception as error:  # noqa: BLE001 - also a bug of one check leaves the others as they are
        return failure(check.name, error)


def late(check: str, deadline_s: float) -> Finding:
    """Return the finding of a check that has not ended in time."""
    cure = "check the network and the load of the machine, or give it more time with --deadline"
    return Finding("failed", check, f"no answer within {deadline_s:g} s", cure)


def failure(check: str, error: Exception) -> Finding:
    """Return the finding of a check that raised an error."""
    if not isinstance(error, expected_errors()):
        return Finding("failed", check, f"unexpected {type(error).__name__}: {error}", "report this bug")
    text = one_line(error)
    known = next(causes([text]), None)
    return Finding("failed", check, text, known.cure if known else "")


async def in_thread(function: Callable[[], T]) -> T:
    """Return the result of a function that blocks.

    Its thread does not keep the process from ending: a keyring may wait for somebody to unlock it.
    """
    loop = asyncio.get_running_loop()
    result: asyncio.Future[T] = loop.create_future()

    def settle(value: T | None, error: Exception | None) -> None:
        if result.done():  # it was given up
            return
        if error is None:
            result.set_result(value)  # type: ignore[arg-type] # it is the function's result
        else:
            result.set_exception(error)

    def work() -> None:
        value, failed = None, None
        try:
            value = function()
        except Exception as error:  # noqa: BLE001 - the caller gets it
            failed = error
        with contextlib.suppress(RuntimeError):  # the loop was closed in the meantime
            loop.call_soon_threadsafe(settle, value, failed)

    threading.Thread(target=work, daemon=True).start()
    return await result
