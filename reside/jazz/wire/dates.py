"""Times of transactions as dates. An author may write any integer; those out of range are clamped."""

from datetime import UTC, datetime, timedelta
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
_FIRST_MS: Final = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MILLISECOND
_LAST_MS: Final = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MILLISECOND


def date_of(ms: int) -> datetime:
    """Return the date of a time in ms since the epoch, clamped to the range of `datetime`."""
    return _EPOCH + min(max(ms, _FIRST_MS), _LAST_MS) * _MILLISECOND
