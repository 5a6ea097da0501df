"""The way of one image as its operator sees it: request, what it asks for, approval, and the version until it runs.

A load survives a restart of Alpha. What is read comes from Jazz. Of the calls, ``create-load-request`` may be repeated
after a lost answer, since Alpha makes one load request of a request value; and so may ``approve-load-request``, since
a request is approved once, as the revision that the call names. ``reject-load-request`` is not repeated.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import stamina
from pydantic import ValidationError
from rich.console import Group

from reside.cli import output
from reside.cli.replicas import ReplicaView, Row
from reside.cli.session import ALPHA_WITHIN_S
from reside.model.alpha_contract import APPROVE_LOAD_REQUEST, CREATE_LOAD_REQUEST
from reside.model.entities import ApproveRequest, LoadRequest, LoadRequestSpec
from reside.model.errors import AnswerLost, Conflict, InvalidInput, LoadRefused, NotReady

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable

    from rich.console import RenderableType

    from reside.cli.session import Session
    from reside.jazz import CoMap

VALIDATION_S = 120.0
"""Seconds for Alpha to validate a request and for the Sentinel to preview it."""
RUNNING_S = 300.0
"""Seconds for a version to run. How long a oneshot then takes to complete is its own affair."""
APPROVALS = 3
"""How often a preview that the world overtook is shown and approved again."""


async def create_request(session: Session, wish: LoadRequestSpec) -> tuple[int, CoMap]:
    """Write the request value and have Alpha make a load request of it; returns its id and map."""
    group = session.node.create_group()
    await group.add_member(session.alpha, "reader")
    value = group.create_map(wish.document())
    await session.node.flush()
    async for attempt in _repeated():
        with attempt:
            answer = await session.call(CREATE_LOAD_REQUEST, {"wish": value.id})
    return int(answer["id"]), await session.node.load_map(str(answer["loadRequest"]))


async def wait_validated(request: CoMap, tell: Callable[[str], None]) -> LoadRequest:
    """Wait until a request can be decided on.

    Raises:
        LoadRefused: it is invalid; the message is Alpha's reason.
        NotReady: that was not known in time.
    """
    async for current in _states(request, VALIDATION_S, "validation"):
        tell(f"request {current.id}: {current.status}")
        if current.status == "invalid":
            raise _refused(current)
        if current.status == "requires-approval":
            return current
        if current.status in ("approved", "rejected"):
            why = f": {current.rejection_reason}" if current.rejection_reason else ""
            raise Conflict(f"load request {current.id} was {current.status} by somebody else{why}")
    raise NotReady("the load request is gone")


async def approve(
    session: Session,
    request: CoMap,
    seen: LoadRequest,
    decide: Callable[[LoadRequest], Awaitable[None]],
    tell: Callable[[str], None],
) -> LoadRequest:
    """Approve a request as it was seen; if the world moved in between, let it be seen again, at most a few times.

    Args:
        session: with the cluster.
        request: the request's map.
        seen: what stands in it.
        decide: shows a request and lets it be decided on; raises if it shall not be approved.
        tell: gets remarks on what is going on.

    Returns:
        the request with its new version.

    Raises:
        LoadRefused: it was approved, but can't be carried out; the message is Alpha's reason.
        Conflict: somebody else decided, or the world does not stand still.
        NotReady: the version was not made in time.
    """
    for attempt in range(APPROVALS):
        await decide(seen)
        try:
            await _approve_as_seen(session, request, seen)
            break
        except Conflict as error:
            if attempt == APPROVALS - 1:
                raise
            tell(f"{error}: looking again")
            await session.node.catch_up()  # Alpha answered after its writes were acknowledged; they may not be here yet
            seen = await wait_validated(request, tell)
    async for current in _states(request, VALIDATION_S, "the new version"):
        if current.status == "invalid":
            raise _refused(current)
        if current.status == "approved" and current.version is not None:
            return current
    raise NotReady("the load request is gone")


async def _approve_as_seen(session: Session, request: CoMap, seen: LoadRequest) -> None:
    """Approve the revision that was seen.

    Alpha refuses a repeated approval if it carried out the one whose answer was lost. Then the request is approved.

    Raises:
        Conflict: another revision is to be approved, or somebody else decided.
    """
    body: dict[str, Any] = {"id": seen.id, "revision": _revision(seen), "choices": {}}
    lost = False
    async for attempt in _repeated():
        with attempt:
            try:
                await session.call(APPROVE_LOAD_REQUEST, body)
            except AnswerLost:
                lost = True
                raise
            except Conflict:
                if not lost or not await _is_approved(session, request, seen):
                    raise


async def _is_approved(session: Session, request: CoMap, seen: LoadRequest) -> bool:
    """Whether a request has been approved as it was seen, even if it could not be carried out then."""
    await session.node.catch_up()
    current = LoadRequest.model_validate(request.as_dict())
    return current.status in ("approved", "invalid") and _revision(current) == _revision(seen)


def _revision(request: LoadRequest) -> str | None:
    return (request.preview or {}).get("revision")


def _repeated() -> AsyncIterable[stamina.Attempt]:
    """The attempts at a call that may be repeated after a lost answer.

    Through a port-forward, a container that starts again looks like this: kubectl takes each connection and drops it.
    """
    return stamina.retry_context(on=AnswerLost, attempts=None, timeout=ALPHA_WITHIN_S)


def _refused(request: LoadRequest) -> LoadRefused:
    return LoadRefused(f"load request {request.id} is invalid: {request.error_message}")


async def follow_version(session: Session, name: str, version: int, tell: Callable[[Row], None]) -> Row:
    """Follow a version until it runs, or failed; a oneshot until it completed.

    Raises:
        NotReady: it does not run in time.
        Conflict: another version has taken its place.
    """
    last = "nothing"
    try:
        async with asyncio.timeout(RUNNING_S) as deadline:
            async for rows in ReplicaView(session.node, session.data).changes():
                row = next((row for row in rows if row["name"] == name), None)
                if row is None or (row["version"] or 0) < version:
                    continue
                if row["version"] > version:
                    raise Conflict(f"version {version} of {name} was replaced by version {row['version']}")
                last = row["status"]
                tell(row)
                if is_reached(row):
                    return row
                if last == "running":
                    deadline.reschedule(None)
    except TimeoutError:
        pass
    raise NotReady(f"version {version} of {name} does not run after {RUNNING_S:.0f} s, it is {last}")


def is_reached(row: Row) -> bool:
    """Whether a replica's current version has come to where a load ends."""
    return row["status"] in ("completed", "error") or (row["status"] == "running" and row["class"] != "oneshot")


async def _states(request: CoMap, seconds: float, what: str) -> AsyncIterator[LoadRequest]:
    try:
        async with asyncio.timeout(seconds), request.watch() as changes:
            async for value in changes:
                try:
                    yield LoadRequest.model_validate(value.as_dict())
                except ValidationError:
                    continue  # not all members have arrived
    except TimeoutError:
        raise NotReady(f"{what} took longer than {seconds:.0f} s: is the Sentinel running?") from None


def described(request: LoadRequest) -> RenderableType:
    """A request that requires approval, for a person: identity, requirements, permissions, preview."""
    wanted = request.approve_request
    if wanted is None:
        raise InvalidInput(f"load request {request.id} has nothing to approve")
    parts: list[RenderableType] = [output.table(["", ""], _head(request, wanted), title=f"load request {request.id}")]
    if wanted.requirements:
        parts.append(
            output.table(
                ["REQUIRES", "FROM", "ALTERNATIVES", "PERMISSIONS"], _requirements(wanted), title="\nrequirements"
            )
        )
    changes = (request.preview or {}).get("changes") or []
    rows = [(c["action"], c["object"], ", ".join(c.get("paths", ()))) for c in changes]
    parts.append(output.table(["ACTION", "OBJECT", "PATHS"], rows, title="\npreview"))
    return Group(*parts)


def _head(request: LoadRequest, wanted: ApproveRequest) -> list[tuple[str, Any]]:
    return [
        ("name", wanted.name),
        ("image", request.image),
        ("identity", wanted.identity),
        ("digest", wanted.digest),
        ("class", wanted.info.kind + (", scalable" if wanted.info.scalable else "")),
        ("implements", ", ".join(wanted.implementations.values()) or "nothing"),
    ]


def _requirements(wanted: ApproveRequest) -> list[tuple[str, ...]]:
    return [
        (
            f"{key} ({need.contract})" + (" optional" if need.optional else ""),
            ", ".join(f"{r.name} ({r.id})" for r in need.replicas) or "nobody",
            ", ".join(f"{r.name} ({r.id})" for r in need.alternatives),
            ", ".join(p.permission + (f" for {p.instance_id}" if p.instance_id else "") for p in need.permissions),
        )
        for key, need in wanted.requirements.items()
    ]
