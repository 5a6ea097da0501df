"""Expiry: a load request that nobody decides ends after a time, and with it its claim on a name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reside.alpha import records

if TYPE_CHECKING:
    from reside.alpha.records import RequestRecord
    from reside.alpha.state import Alpha

UNDECIDED: Final = frozenset({"validating", "requires-approval"})
_MS_PER_HOUR: Final = 3_600_000


def expires_in(alpha: Alpha, record: RequestRecord) -> float | None:
    """Return the seconds until a request expires, 0 if it is due; None if it is decided and never expires."""
    if record.value.status not in UNDECIDED:
        return None
    end = record.map.history("id")[0].at + alpha.cluster.request_expiry_hours * _MS_PER_HOUR
    return max(0.0, (end - alpha.node.now_ms()) / 1000)


async def expire(alpha: Alpha, number: int) -> None:
    """Reject a request that nobody has decided; do nothing if somebody has in the meantime."""
    hours = alpha.cluster.request_expiry_hours
    why = f"expired: nobody approved it within {hours:g} h; load the image again"
    async with alpha.transaction() as tx:
        record = await records.find_request(alpha.data, number)
        found = await tx.load(record.map.id)
        if found.get("status") in UNDECIDED:
            tx.stage(lambda: found.update({"status": "rejected", "rejectionReason": why}))
