"""Load requests that matter for a replica now: those that are open, and those that failed after its last version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reside.cli.requests import read_finished_after, read_open
from reside.model.identities import resolved

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from reside.cli.replicas import Row
    from reside.cli.session import Session
    from reside.model.entities import LoadRequest

_MOST: Final = 3
"""How many requests that failed are shown."""


async def requests_of(session: Session, name: str, row: Row | None) -> list[LoadRequest]:
    """Return the requests that matter for a replica, the newest first.

    Args:
        session: session with the cluster.
        name: name of the replica.
        row: the replica; None if it does not exist.

    Raises:
        NotAllowed: the account may not read load requests.
    """
    last = last_request(row)
    finished = await read_finished_after(session, last)
    return relevant([*await read_open(session), *finished], name, row)


def last_request(row: Row | None) -> int:
    """Return the id of the request that made the latest version of a replica; 0 if there is none."""
    return max((version["request"] or 0 for version in row["versions"]), default=0) if row is not None else 0


def relevant(requests: Iterable[LoadRequest], name: str, row: Row | None) -> list[LoadRequest]:
    """Return those of these requests that would change this replica, the newest first; of those that failed the last.

    An image that could not be read has no manifest, so its request names no replica: then its identity decides.
    """
    found = sorted((each for each in requests if _is_of(each, name, row)), key=lambda each: each.id, reverse=True)
    failed = [each for each in found if not each.is_open and each.version is None][:_MOST]
    return [each for each in found if each.is_open or each in failed]


def _is_of(request: LoadRequest, name: str, row: Row | None) -> bool:
    if request.approve_request is not None:
        return request.approve_request.name == name
    if request.existing_replica is not None:
        return row is not None and request.existing_replica == row["id"]
    if request.requested_name is not None:
        return request.requested_name == name
    identity = resolved(request.image).partition("@")[0]
    if row is not None and (identity == row["identity"] or identity.startswith(f"{row['identity']}:")):
        return True
    return identity.rpartition("/")[2].partition(":")[0] == name


def lines(requests: Iterable[LoadRequest]) -> list[str]:
    """Return a sentence about each request."""
    return [line(each) for each in requests]


def line(request: LoadRequest) -> str:
    """Return what became of a request, or what it waits for."""
    what = f"load request {request.id}"
    if request.status == "requires-approval":
        return f"{what} waits for approval: {request.image}"
    if request.status == "validating":
        return f"{what} is validated: {request.waits_for or request.image}"
    if request.status == "approved":
        return f"{what} is approved and is carried out: {request.image}"
    return f"{what} is {request.status}: {request.error_message or request.rejection_reason or 'no reason was given'}"


def document(request: LoadRequest) -> Mapping[str, object]:
    """Return what programs get of a request."""
    return {
        "id": request.id,
        "status": request.status,
        "image": request.image,
        "reason": request.error_message or request.rejection_reason,
    }
