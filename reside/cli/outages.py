"""Wait out an outage of Alpha, Jazz or etcd in the middle of a command, and show it.

A restart of a part of the platform takes seconds to a minute. Calls that may be repeated are repeated meanwhile; what a
command waits for in Jazz arrives after the node has connected again. The operator sees what is away, and its return.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Final, TypeVar

from reside.access.errors import AccessError
from reside.cli.notices import Notice, say
from reside.jazz import JazzTimeout, JazzUnavailable
from reside.model.constants import ALPHA_NAME
from reside.model.endpoints import account_path
from reside.model.errors import NotReady, ResideError
from reside.replica.background import in_background

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from reside.cli.session import Session

    Result = TypeVar("Result")

OUTAGES: Final = (NotReady, JazzTimeout, JazzUnavailable)
"""The errors of a call or of Jazz during an outage."""
WITHIN_S: Final = 120.0
"""Seconds for which a call is repeated: Alpha's start, and the expiry of a dead leader's lease, may take this long."""
_LOOK_S: Final = 2.0
"""Seconds between two looks whether Alpha and Jazz are there."""
_LONGEST_PAUSE_S: Final = 2.0


async def repeated(call: Callable[[], Awaitable[Result]]) -> Result:
    """Call a function until it is not interrupted by an outage, and return its result.

    Args:
        call: what may be repeated, also after it was carried out and the answer was lost.

    Raises:
        NotReady: the outage is longer than `WITHIN_S`.
        JazzError: see `NotReady`.
    """
    import stamina  # noqa: PLC0415 - slow to import, and reads do without

    notice = Notice(quiet_s=0)
    tries = stamina.retry_context(on=OUTAGES, attempts=None, timeout=WITHIN_S, wait_max=_LONGEST_PAUSE_S)
    async for attempt in tries:
        with attempt:
            try:
                result = await call()
            except OUTAGES as error:
                notice.waits(str(error))
                raise
    notice.goes_on()
    return result


@asynccontextmanager
async def outages_shown(session: Session) -> AsyncIterator[None]:
    """Show when Alpha or Jazz is away while the block waits for what they write."""
    notice = Notice(quiet_s=0)

    async def look() -> None:
        while True:
            await asyncio.sleep(_LOOK_S)
            why = await _absent(session)
            if why is None:
                notice.goes_on()
            else:
                notice.waits(why)

    async with in_background(outages=look):
        yield


async def _absent(session: Session) -> str | None:
    """Return which part of the platform does not respond; None if all do."""
    if not session.node.connected:
        return "Jazz can't be reached"
    import httpx2  # noqa: PLC0415 - as above

    try:
        address = await session.endpoint()
        answer = await session.http.get(f"{address}{account_path(ALPHA_NAME)}", timeout=_LOOK_S)
    except (ResideError, AccessError, OSError, httpx2.TransportError):  # the block waits for Jazz, and goes on
        return "Alpha can't be reached"
    return "Alpha is starting" if answer.is_server_error else None


AGAIN: Final = "run the command again: it continues where it stopped"
"""What `leaving` says of a command that may be repeated."""


@contextmanager
def leaving(left: str) -> Iterator[None]:
    """Say how to go on if Ctrl-C or an outage ends the block.

    Args:
        left: what remains, and how to go on.
    """
    try:
        yield
    except (asyncio.CancelledError, KeyboardInterrupt):
        say(left)
        raise
    except OUTAGES as error:
        raise NotReady(f"{error}; {left}") from error
