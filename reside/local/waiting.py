"""The one place of this package that waits: poll a condition until a deadline."""

import time
from collections.abc import Callable

FIRST_PAUSE = 0.02
LONGEST_PAUSE = 0.25


def wait_until(condition: Callable[[], bool], timeout: float) -> bool:
    """Poll `condition` with growing pauses until it is true.

    Args:
        condition: Asked at once, then again and again; what it raises ends the wait.
        timeout: Seconds after which the wait is given up.

    Returns:
        Whether the condition became true in time.
    """
    deadline = time.monotonic() + timeout
    pause = FIRST_PAUSE
    while not condition():
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        time.sleep(min(pause, left))
        pause = min(pause * 1.5, LONGEST_PAUSE)
    return True
