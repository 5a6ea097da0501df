"""The permission loop: make current grants equal to expected grants (docs/model.md, section 4).

Level-triggered: each pass compares `expected` with `current` for all permissions, at start and at every change of the
control block. `current` is written only after the handler has succeeded. A handler that fails leaves it unchanged; the
failure is logged, and the handler is retried with back-off.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import structlog

from reside.common import workqueue
from reside.common.backoff import Backoff
from reside.common.transience import safe_text
from reside.common.workqueue import Verdict, WorkQueue
from reside.jazz import AccountId, JazzError, NodeClosed
from reside.model.errors import NotReady
from reside.model.lookup import TARGET, granted_permissions
from reside.replica.declaration import NO_HANDLERS
from reside.replica.health import GRANTS_FAILED, GRANTS_PENDING, LAST_GRANTS_PASS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reside.model.permissions import ControlBlockPermission, Grant, PermissionRef
    from reside.replica.context import Context
    from reside.replica.declaration import Declaration, PermissionHandler

_log = structlog.get_logger(__name__)

HANDLER_TIMEOUT_S = 60.0
_BACKOFF = Backoff(first=1.0, longest=60.0)
"""Pauses between passes after a failure. They are long, because a handler may be expensive."""

Act = Literal["granted", "revoked", "updated"]


@dataclass(frozen=True)
class Step:
    """One change to carry out."""

    ref: PermissionRef
    act: Act
    grant: Grant


def next_steps(permissions: Iterable[ControlBlockPermission]) -> list[Step]:
    """Return the changes that make current grants equal to expected ones; revocations come first."""
    steps = [Step(p.ref, _act(p.expected, p.current), p.expected) for p in permissions if not p.settled]
    return sorted(steps, key=lambda step: step.act != "revoked")


def _act(expected: Grant, current: Grant | None) -> Act:
    if not expected.granted:
        return "revoked"
    return "updated" if current is not None and current.granted else "granted"


async def run_permission_loop(context: Context, declaration: Declaration) -> None:
    """Run the permission loop until cancelled."""
    queue = WorkQueue("grants", lambda _: reconcile(context, declaration), workers=1, backoff=_BACKOFF, judge=_judge)
    unsubscribe = context.rcb.on_change(lambda: queue.add(context.name))
    queue.add(context.name)
    try:
        await queue.run()
    finally:
        unsubscribe()


def _judge(error: Exception) -> Verdict:
    """Raise NodeClosed, since no later attempt can succeed; retry other errors."""
    return Verdict.RAISE if isinstance(error, NodeClosed) else workqueue.judge(error)


async def reconcile(context: Context, declaration: Declaration) -> None:
    """Make one pass over all permissions: carry out their changes and publish the grants.

    Raises:
        NotReady: some changes were not carried out, or grants not published; the log says which and why.
        JazzError: the control block can't be read now.
    """
    await context.rcb.refresh()
    steps = next_steps(context.rcb.permissions())
    done = [await _try(context, declaration, step) for step in steps]
    published = await publish(context)
    GRANTS_PENDING.labels(context.name).set(done.count(False))
    LAST_GRANTS_PASS.labels(context.name).set(time.time())
    if not (all(done) and published):
        raise NotReady(f"not all permissions of {context.name} are carried out and published: see its log")


async def _try(context: Context, declaration: Declaration, step: Step) -> bool:
    try:
        await _carry_out(context, declaration, step)
    except NodeClosed:
        raise
    except Exception as error:  # noqa: BLE001 - a bug in one handler must not block other permissions; it is retried
        GRANTS_FAILED.labels(context.name).inc()
        _log.error(
            "permission not carried out",
            replica=context.name,
            permission=step.ref.key,
            act=step.act,
            kind=type(error).__name__,
            error=safe_text(error),  # a handler's error may contain a secret
        )
        return False
    _log.info("permission carried out", replica=context.name, permission=step.ref.key, act=step.act)
    return True


async def _carry_out(context: Context, declaration: Declaration, step: Step) -> None:
    """Run the handler and write the result, in one process at a time; skip it if another process has done it."""
    async with context.transaction(f"grant/{context.rcb.id}") as tx:
        await context.rcb.refresh()
        entry = context.rcb.find(step.ref)
        if entry is None or entry.settled or entry.expected != step.grant:
            return
        handler = _handler(declaration, step)
        if handler is not None:
            async with asyncio.timeout(HANDLER_TIMEOUT_S):
                await handler(context, step.ref, step.grant)
        tx.stage(lambda: context.rcb.set_current(step.ref, step.grant))


def _handler(declaration: Declaration, step: Step) -> PermissionHandler | None:
    """Return the declared handler.

    Raises:
        InvalidInput: this replica does not implement the contract.
        NotReady: the contract of this version of the replica does not have the permission.
    """
    contract = declaration.contract(step.ref.contract)
    if step.act != "revoked" and step.ref.name not in contract.permissions:
        raise NotReady(f"contract {contract.identity} in this version of the replica has no permission {step.ref.name}")
    handlers = declaration.permissions.get((step.ref.contract, step.ref.name), NO_HANDLERS)
    if step.act == "granted":
        return handlers.granted
    if step.act == "revoked":
        return handlers.revoked
    return handlers.updated or handlers.granted


async def publish(context: Context) -> bool:
    """Publish to each grantee what is granted to it; return whether that succeeded for all.

    The unique map `granted-permissions:for-account:<accountId>` of the public group points (member `target`) to a map
    that only the grantee can read: permission key → params.
    """
    by_grantee: dict[AccountId, dict[str, Any]] = {}
    for permission in context.rcb.permissions():
        granted = by_grantee.setdefault(AccountId(permission.ref.account), {})
        if permission.current is not None and permission.current.granted:
            granted[permission.ref.key] = permission.current.params
    return all([await _try_to_publish(context, account, granted) for account, granted in by_grantee.items()])


async def _try_to_publish(context: Context, account: AccountId, granted: dict[str, Any]) -> bool:
    try:
        await _publish_to(context, account, granted)
    except NodeClosed:
        raise
    except JazzError as error:
        _log.warning("grants can't be published", replica=context.name, account=account, error=str(error))
        return False
    return True


async def _publish_to(context: Context, account: AccountId, granted: dict[str, Any]) -> None:
    name = granted_permissions(account)
    pointer = await context.node.find_unique_map(context.public.id, name)
    target = None if pointer is None else pointer.get(TARGET)
    if isinstance(target, str):
        published = await context.node.load_map(target)
    elif granted:
        group = context.node.create_group(name)
        await group.add_member(account, "reader")
        published = group.create_map({})
        pointer = await context.node.unique_map(context.public, name)
        pointer.set(TARGET, published.id)
    else:
        return
    published.update({key: params for key, params in granted.items() if published.get(key) != params})
    for key in [key for key in published if key not in granted]:
        published.delete(key)
