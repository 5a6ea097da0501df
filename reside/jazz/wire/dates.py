"""Times as dates and back. An author may write any integer or text: integers out of range are clamped."""

from datetime import UTC, datetime, timedelta
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
_FIRST_MS: Final = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MILLISECOND
_LAST_MS: Final = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MILLISECOND


def date_of(ms: int) -> datetime:
    """Return the date of a time in ms since the epoch, clamped to the range of `datetime`."""
    return _EPOCH + min(max(ms, _FIRST_MS), _LAST_MS) * _MILLISECOND


def ms_of(text: str) -> int | None:
    """Return the time of an ISO 8601 text in ms since the epoch, in UTC without a zone; None if it is no such text."""
    try:
        date = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (date.replace(tzinfo=date.tzinfo or UTC) - _EPOCH) // _MILLISECOND
