"""How long to wait before the next attempt to connect."""

from typing import Final

_STEP_S: Final = 0.5
_MAX_S: Final = 10.0


def back_off(failures: int, chance: float) -> float:
    """Seconds until the next attempt: half a second more after each failure, at most ten, and a part of it by chance.

    Clients that lost the same server so come back one after the other.

    Args:
        failures: attempts that brought nothing since the last good connection; 0 right after one.
        chance: between 0 and 1; without a failure it decides all of the wait, otherwise a half.
    """
    if failures == 0:
        return _STEP_S * chance
    return min(failures * _STEP_S, _MAX_S) * (0.5 + chance / 2)
