"""Exponential back-off: the pause before the next attempt. Pure."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST_DOUBLINGS: Final = 30
"""Limit of the exponent. Further doublings have no effect, but would overflow a float after a thousand failures."""


@dataclass(frozen=True)
class Backoff:
    """Pauses that double with each consecutive failure, from `first` up to `longest`.

    The defaults suit cheap requests to a service on the same network: its restart is noticed in a fraction of a second,
    and a long outage costs one attempt every five seconds.

    Attributes:
        first: seconds after the first failure that costs a pause.
        longest: seconds that no pause exceeds.
        free: failures without a pause.
        jitter: random part of a pause, from 0 to 1. It prevents clients that failed together from retrying together.
    """

    first: float = 0.2
    longest: float = 5.0
    free: int = 0
    jitter: float = 0.0

    def pause(self, failures: int, draw: float = 0.0) -> float:
        """Return the seconds to wait after `failures` consecutive failures.

        Args:
            failures: number of failures; 0 needs no pause.
            draw: a random number from 0 to 1, the share of the jitter that is subtracted from the pause.
        """
        doublings = failures - self.free - 1
        if doublings < 0:
            return 0.0
        return min(self.first * 2.0 ** min(doublings, _MOST_DOUBLINGS), self.longest) * (1.0 - self.jitter * draw)


DEFAULT: Final = Backoff()


class Retries:
    """The number of consecutive failures of one activity, and the resulting pauses.

    Args:
        backoff: the pauses.
        draw: returns a random number from 0 to 1 for each pause.
    """

    def __init__(self, backoff: Backoff = DEFAULT, draw: Callable[[], float] = random.random) -> None:
        self._backoff = backoff
        self._draw = draw
        self.failures = 0
        """Failures since the last success."""

    def failed(self) -> float:
        """Count a failure; return the seconds to wait before the next attempt."""
        self.failures += 1
        return self._backoff.pause(self.failures, self._draw())

    def succeeded(self) -> None:
        """Forget the failures."""
        self.failures = 0
