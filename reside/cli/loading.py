"""Load one image: create the request, show its preview, approve it, and follow the new version until it runs.

A load continues after a restart of Alpha, Jazz or etcd. All reads come from Jazz. The calls may be repeated after a
lost answer: Alpha creates one load request for each load request value, and a request is decided once, as the revision
that the call names. A load that ends before its version runs says what remains, and how to go on.
"""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from reside.cli.explanations import causes, with_cure
from reside.cli.notices import Notice
from reside.cli.outages import OUTAGES, leaving, repeated
from reside.cli.replicas import ReplicaView, Row
from reside.model.alpha_contract import APPROVE_LOAD_REQUEST, CREATE_LOAD_REQUEST, REJECT_LOAD_REQUEST
from reside.model.entities import (
    HealthPolicy,
    LoadRequest,
    LoadRequestSpec,
)
from reside.model.errors import Conflict, LoadRefused, NotAllowed, NotReady, ResideError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from reside.cli.session import Session
    from reside.jazz import CoMap, Group

VALIDATION_S = 120.0
"""Seconds for Alpha to validate a request and for the Sentinel to preview it."""
PREVIEW_S = 10.0
"""Seconds after which a preview is said to be slow; it usually takes less than one."""
SLOW_PREVIEW = (
    f"the Sentinel has not previewed the change for {PREVIEW_S:.0f} s: `reside doctor` shows whether one leads"
)
"""It may restart; then the next one makes the preview."""
GRACE_S = 60.0
"""Seconds to wait after the health deadline of a version. A oneshot that runs may take any time to complete."""
APPROVALS = 3
"""Maximum number of attempts to approve a request, if cluster state changes after each preview."""


async def create_request(session: Session, spec: LoadRequestSpec) -> tuple[int, CoMap]:
    """Write the load request value and let Alpha create a load request from it; return its id and map."""
    with leaving("the load request may exist: see `reside request list`"):
        value = (await repeated(lambda: _values_group(session))).create_map(spec.compact_document())
        await repeated(session.node.flush)
        response = await repeated(lambda: session.call(CREATE_LOAD_REQUEST, {"wish": value.id}))
    number = int(response["id"])
    with leaving(stays_open(number)):
        return number, await repeated(lambda: session.node.load_map(str(response["loadRequest"])))


async def _values_group(session: Session) -> Group:
    """Return the group of this account's load request values; Alpha is a reader of it.

    A group for each value would take twice the space of the value. A private map of the account names it.
    """
    node, name = session.node, f"load-request-values.{session.alpha}"
    found = await node.find_unique_map(node.account.id, name)
    if found is None:
        group = node.create_group()
        await group.add_member(session.alpha, "reader")
        found = await node.unique_map(node.account, name, {"group": group.id})
    return await node.load_group(str(found["group"]))


async def wait_validated(request: CoMap, report: Callable[[str], None]) -> LoadRequest:
    """Wait until a request requires approval.

    Raises:
        LoadRefused: it is invalid; the message is Alpha's reason.
        Conflict: another operator approved or rejected it.
        NotReady: the validation took too long.
    """
    notice = Notice(quiet_s=0)
    with leaving(stays_open(int(request.as_dict()["id"]))), ExitStack() as slow:
        async for current in _states(request, VALIDATION_S, "validation"):
            slow.close()
            report(f"request {current.id}: {_step(current)}")
            if _is_previewed(current):
                slow.enter_context(notice.after(PREVIEW_S, SLOW_PREVIEW))
            else:
                notice.goes_on()
            if current.status == "invalid":
                raise _refused(current)
            if current.status == "requires-approval":
                return current
            if current.status in ("approved", "rejected"):
                raise _decided(current)
    raise NotReady("the load request was deleted: load the image again")


def _step(request: LoadRequest) -> str:
    """Return the status of a request, and what a validation does now."""
    if request.status != "validating":
        return request.status
    if _is_previewed(request):
        return "validating, the Sentinel previews the change"
    return f"validating, {f'waits: {request.waits_for}' if request.waits_for else 'Alpha reads the image'}"


def _is_previewed(request: LoadRequest) -> bool:
    """Return whether a request waits for the Sentinel."""
    return request.status == "validating" and request.digest is not None


def _decided(request: LoadRequest) -> Conflict:
    reason = f": {request.rejection_reason}" if request.rejection_reason else ""
    by = "" if reason and next(causes([request.rejection_reason]), None) else " by another operator"
    return Conflict(f"load request {request.id} was {request.status}{by}{with_cure(reason)}")


async def approve(
    session: Session,
    request: CoMap,
    seen: LoadRequest,
    decide: Callable[[LoadRequest], Awaitable[None]],
    report: Callable[[str], None],
    *,
    asked: Mapping[str, Any] | None = None,
) -> LoadRequest:
    """Approve a request as it was shown; show it again if cluster state changed in between, up to `APPROVALS` times.

    Args:
        session: session with the cluster.
        request: map of the request.
        seen: content of the map, as it was read last.
        decide: shows a request and asks for a decision; raises if the request must not be approved.
        report: called with messages on the progress.
        asked: further members of the approval: `choices`, `name`.

    Returns:
        the request with its new version.

    Raises:
        LoadRefused: it was approved, but can't be carried out; the message is Alpha's reason.
        Conflict: another operator decided, or cluster state changed each time.
        NotReady: the version was not created in time.
    """
    for attempt in range(APPROVALS):
        await decide(seen)
        try:
            await _approve_as_seen(session, request, seen, asked or {})
            break
        except Conflict as error:
            if attempt == APPROVALS - 1:
                raise
            report(f"{error}: reading the request again")
            # Alpha responds when the server has its writes; this node may not have them
            await repeated(session.node.catch_up)
            seen = await wait_validated(request, report)
        except NotAllowed as error:
            raise NotAllowed(f"{error}; {stays_open(seen.id)}") from None
    with leaving(f"load request {seen.id} is approved and goes on: see `reside request show {seen.id}`"):
        return await _wait_carried_out(request)


async def _wait_carried_out(request: CoMap) -> LoadRequest:
    async for current in _states(request, VALIDATION_S, "the new version"):
        if current.status == "invalid":
            raise _refused(current)
        if current.status == "approved" and current.version is not None:
            return current
    raise NotReady("the load request was deleted: load the image again")


async def _approve_as_seen(session: Session, request: CoMap, seen: LoadRequest, asked: Mapping[str, Any]) -> None:
    """Approve the revision that was shown.

    Raises:
        Conflict: the request has another revision now, or another operator decided.
    """
    body: dict[str, Any] = {"choices": {}, **asked, "id": seen.id, "revision": seen.revision}

    async def is_done() -> bool:
        current = await _current(session, request)
        # also if it could not be carried out afterwards
        return current.status in ("approved", "invalid") and current.revision == seen.revision

    see = f"see `reside request show {seen.id}`, then `reside request approve {seen.id}` if nobody has approved it"
    with leaving(f"load request {seen.id} may be approved: {see}"):
        await _decide_once(session, APPROVE_LOAD_REQUEST, body, is_done)


async def reject(session: Session, request: CoMap, number: int, reason: str) -> None:
    """Reject a request.

    Raises:
        Conflict: another operator decided.
    """

    async def is_done() -> bool:
        current = await _current(session, request)
        return current.status == "rejected" and current.rejection_reason == reason

    with leaving(stays_open(number)):
        await _decide_once(session, REJECT_LOAD_REQUEST, {"id": number, "reason": reason}, is_done)


async def _decide_once(
    session: Session, method: str, body: dict[str, Any], is_done: Callable[[], Awaitable[bool]]
) -> None:
    """Call a method that decides on a request, and repeat the call after an outage.

    Alpha refuses the repetition of a decision that it carried out and whose answer was lost. This counts as success. A
    restarting container behind a port-forward has the same effect: kubectl accepts a connection and closes it.
    """
    is_repeated = False

    async def call() -> None:
        nonlocal is_repeated
        try:
            await session.call(method, body)
        except OUTAGES:
            is_repeated = True
            raise
        except Conflict:
            if not is_repeated or not await is_done():
                raise

    await repeated(call)


async def _current(session: Session, request: CoMap) -> LoadRequest:
    """Return a request as it is on the server."""
    await session.node.catch_up()
    return LoadRequest.model_validate(request.as_dict())


def stays_open(number: int) -> str:
    """Return what remains if nobody decides on a request, and how to go on."""
    return (
        f"load request {number} stays open: `reside request approve {number}`, "
        f"or `reside request reject {number} --reason TEXT`"
    )


def _refused(request: LoadRequest) -> LoadRefused:
    known = next(causes([request.error_message]), None)
    more = "" if known is None else f"; `reside explain {known.code}` says more"
    return LoadRefused(f"load request {request.id} is invalid: {request.error_message}{more}")


async def follow_version(
    session: Session, name: str, version: int, health: HealthPolicy, report: Callable[[Row], None]
) -> Row:
    """Follow a version until it runs, completes (a oneshot) or fails.

    Raises:
        NotReady: it does not run in time, and Alpha has not said why.
        Conflict: another version replaced it.
        ResideError: it failed and was rolled back, or aborted if it is a canary.
    """
    last = "not created"
    seconds = health.deadline_s + GRACE_S
    try:
        async with asyncio.timeout(seconds) as deadline:
            async for rows in ReplicaView(session.node, session.data).changes():
                row = next((row for row in rows if row["name"] == name), None)
                if row is not None:
                    _check_not_rolled_back(row, version)
                    row = row_of_canary(row, version)
                if row is None or (row["version"] or 0) < version:
                    continue
                if row["version"] > version:
                    raise Conflict(f"version {version} of {name} was replaced by version {row['version']}")
                last = row["status"]
                report(row)
                if is_finished(row, health):
                    return row
                if last == "running":
                    deadline.reschedule(None)
    except TimeoutError:
        pass
    raise NotReady(
        f"version {version} of {name} does not run after {seconds:.0f} s, its status is {last}: check that the pods of "
        "Alpha and the Sentinel are ready"
    )


def _check_not_rolled_back(row: Row, version: int) -> None:
    for found in row["versions"]:
        if found["id"] == version and found["rolledBackTo"] is not None:
            how = "was rolled back to" if found["canaryPercent"] is None else "was a canary and was aborted beside"
            why = f": {with_cure(found['reason'])}" if found["reason"] else ""
            raise ResideError(f"version {version} of {row['name']} {how} version {found['rolledBackTo']}{why}")


def row_of_canary(row: Row, version: int) -> Row:
    """Return the row of a replica as if this version were the current one, if it is the canary."""
    if row["canary"] != version:
        return row
    found = next(found for found in row["versions"] if found["id"] == version)
    return row | {"version": version, "status": found["status"], "reason": found["reason"]}


def is_finished(row: Row, health: HealthPolicy) -> bool:
    """Return whether a load is finished: the version runs, completed (a oneshot) or failed, and is not rolled back."""
    replaced = health.on_failure == "roll-back" or row.get("canary") is not None
    if row["status"] == "error" and replaced and row["class"] != "oneshot":
        earlier = (version for version in row["versions"] if version["id"] < row["version"])
        return not any(version["wasHealthy"] for version in earlier)
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
        raise NotReady(
            f"{what} took longer than {seconds:.0f} s: check that the pods of Alpha and the Sentinel are ready"
        ) from None
