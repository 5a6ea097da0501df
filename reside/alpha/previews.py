"""Previews of load requests: request one from the Sentinel, read its result, withdraw it.

A candidate never changes. Its key in the Sentinel's `previews` contains the request and the revision, so a candidate
with other objects has a key of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reside.alpha.candidate import candidate as render_candidate
from reside.alpha.candidate import updated_replica
from reside.model.previews import StackPreview
from reside.model.sentinel_data import preview_key

if TYPE_CHECKING:
    from reside.alpha.state import Alpha
    from reside.model.entities import LoadRequest
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
    key = preview_key(request, candidate.revision)
    if candidate.objects:
        await alpha.sentinel.withdraw_previews(request, keep=key)
    found = await present(alpha, request, candidate)
    if found is None:
        await alpha.sentinel.request_preview(key, candidate)
    return found


async def present(alpha: Alpha, request: int, candidate: DesiredStack) -> StackPreview | None:
    """Return the preview of a request's candidate, if there is one; it is current, because the Sentinel renews it.

    Raises:
        NotReady: the Sentinel's data can't be reached.
    """
    if not candidate.objects:
        return StackPreview(candidate.name, candidate.revision)
    found = await alpha.sentinel.read_preview(preview_key(request, candidate.revision))
    return found if found is not None and found.revision in {candidate.revision, UNREAD} else None


async def keep(alpha: Alpha, request: LoadRequest) -> None:
    """Request the preview of a request that requires approval again, if the Sentinel has replaced its maps.

    Raises:
        NotReady: the Sentinel's data can't be reached.
    """
    revision = (request.preview or {}).get("revision")
    if request.approve_request is None or await alpha.sentinel.is_previewed(preview_key(request.id, str(revision))):
        return
    approved = request.approve_request
    existing = await updated_replica(
        alpha, approved.identity, exclusive=approved.info.exclusive, replica_id=request.existing_replica
    )
    stack = await render_candidate(alpha, approved, existing, request)
    if stack.objects and stack.revision == revision:
        await alpha.sentinel.request_preview(preview_key(request.id, stack.revision), stack)


async def withdraw(alpha: Alpha, request: int) -> None:
    """Withdraw all candidates of a request.

    Raises:
        NotReady: the Sentinel's data can't be reached.
    """
    await alpha.sentinel.withdraw_previews(request)
