"""Previews of load requests: request one from the Sentinel, read its result, withdraw it.

A candidate never changes. Its key in the Sentinel's `previews` contains the request and the revision, so a candidate
with other objects has a key of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reside.model.sentinel_data import preview_key
from reside.model.stacks import StackPreview

if TYPE_CHECKING:
    from reside.alpha.state import Alpha
    from reside.model.stacks import DesiredStack

UNREAD: Final = ""
"""Revision in the preview of a candidate that the Sentinel could not read; its error says why."""


async def preview(alpha: Alpha, request: int, candidate: DesiredStack) -> StackPreview | None:
    """Return the preview of a request's candidate; None as long as the Sentinel has not written it.

    Earlier candidates of the request are withdrawn. A candidate without objects, such as the seed's, changes nothing
    and needs no Sentinel.

    Raises:
        NotReady: the Sentinel's data can't be reached.
    """
    if not candidate.objects:
        return StackPreview(candidate.name, candidate.revision)
    key = preview_key(request, candidate.revision)
    await alpha.sentinel.withdraw_previews(request, keep=key)
    found = await alpha.sentinel.read_preview(key)
    if found is not None and found.revision in {candidate.revision, UNREAD}:
        return found
    await alpha.sentinel.request_preview(key, candidate)
    return None


async def withdraw(alpha: Alpha, request: int) -> None:
    """Withdraw all candidates of a request.

    Raises:
        NotReady: the Sentinel's data can't be reached.
    """
    await alpha.sentinel.withdraw_previews(request)
