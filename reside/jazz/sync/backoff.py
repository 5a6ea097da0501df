"""The delay before the next attempt to connect."""

from typing import Final

_STEP_S: Final = 0.5
_MAX_S: Final = 10.0


def back_off(failures: int, chance: float) -> float:
    """Return the seconds until the next attempt: 0.5 s for each failure, at most 10 s, reduced by random jitter.

    With jitter, the clients of a restarted server do not all reconnect at the same moment.

    Args:
        failures: failed attempts since the last working connection; 0 right after one.
        chance: a random number from 0 to 1. After a failure it scales half of the delay, otherwise all of it.
    """
    if failures == 0:
        return _STEP_S * chance
    return min(failures * _STEP_S, _MAX_S) * (0.5 + chance / 2)
