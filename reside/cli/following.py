"""Follow the logs of pods: one bounded read after another, each from where the one before ended.

It goes on while pods are replaced, and while what serves the logs restarts.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from reside.jazz import JazzTimeout, JazzUnavailable
from reside.model.errors import NotReady, ResideError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

    from reside.model.pod_logs import PodLog

    Read = Callable[[Mapping[str, str], int, int], Awaitable[list[PodLog]]]
    """Read the logs of pods after these positions: at most this number of lines of each, waiting at most these seconds
    for something new."""

WAIT_S: Final = 25
"""Seconds for which one read waits for something new."""
PAUSE_S: Final = 2.0
"""Seconds from the start of one read to the start of the next: what is written in between comes together."""
MOST_LINES: Final = 10_000
"""Lines of a pod in one read, from the second read on."""


async def follow(read: Read, tail: int, report: Callable[[str], None]) -> AsyncIterator[list[PodLog]]:
    """Yield what pods have written, and then what they write, without end.

    Args:
        read: see `Read`.
        tail: lines of each pod to begin with.
        report: called with a sentence if the logs can't be read for now.

    Raises:
        ResideError: they can't be read any more, for example because a permission was revoked; or the Sentinel is of an
            earlier release, which can't follow them.
    """
    since: dict[str, str] = {}
    lines = tail
    while True:
        started = time.monotonic()
        try:
            found = await read(since, lines, WAIT_S)
        except (NotReady, JazzTimeout, JazzUnavailable) as error:
            report(f"the logs can't be read now, trying again: {error}")
            await asyncio.sleep(PAUSE_S)
            continue
        since = positions(found)
        lines = MOST_LINES
        yield found
        await asyncio.sleep(max(0.0, started + PAUSE_S - time.monotonic()))


def positions(found: Sequence[PodLog]) -> dict[str, str]:
    """Return the position of each log.

    Raises:
        ResideError: there are none.
    """
    if any(log.cursor is None for log in found):
        raise ResideError("the Sentinel is of an earlier release, which can't follow logs: `reside cluster upgrade`")
    return {log.pod: str(log.cursor) for log in found}
