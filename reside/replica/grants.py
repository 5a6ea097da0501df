"""The permission loop: make current grants equal to expected grants (docs/model.md, section 4).

Level-triggered: each pass compares `expected` with `current` for the permissions of one grantee, at start and at every
change of them in the control block. Grantees are independent: a handler that fails or hangs delays only its own.
`current` is written only after the handler has succeeded. A handler that fails leaves it unchanged; the failure is
logged, and the handler is retried with back-off.

A permission that this version of the replica does not implement is never granted. If an earlier version granted it,
that grant ends.
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
from reside.model.permissions import Grant
from reside.replica.declaration import NO_HANDLERS
from reside.replica.health import GRANTS_FAILED, GRANTS_PENDING, LAST_GRANTS_PASS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from reside.model.permissions import ControlBlockPermission, PermissionRef
    from reside.replica.context import Context
    from reside.replica.declaration import Declaration, PermissionHandler

_log = structlog.get_logger(__name__)

HANDLER_TIMEOUT_S = 60.0
_BACKOFF = Backoff(first=1.0, longest=60.0)
"""Pauses between passes after a failure. They are long, because a handler may be expensive."""

_WORKERS = 32
"""Grantees that are handled side by side; so many handlers must hang before others wait."""
_SCAN = ""
"""The key of the pass that finds the grantees whose permissions have changed; no account has this id."""

Act = Literal["granted", "revoked", "updated"]


@dataclass(frozen=True)
class Step:
    """One change to carry out.

    Attributes:
        ref: the permission.
        act: what changes for the grantee; it selects the handler.
        expected: the grant in the control block.
        grant: the grant that results; it differs from `expected` if this version does not implement the permission.
    """

    ref: PermissionRef
    act: Act
    expected: Grant
    grant: Grant


def next_steps(
    permissions: Iterable[ControlBlockPermission], is_implemented: Callable[[PermissionRef], bool]
) -> list[Step]:
    """Return the changes that make current grants equal to expected ones; revocations come first."""
    steps = [step for p in permissions if (step := _step(p, is_implemented)) is not None]
    return sorted(steps, key=lambda step: step.act != "revoked")


def _step(permission: ControlBlockPermission, is_implemented: Callable[[PermissionRef], bool]) -> Step | None:
    is_current = permission.current is not None and permission.current.granted
    if not is_implemented(permission.ref):
        ended = Grant(granted=False)
        return Step(permission.ref, "revoked", permission.expected, ended) if is_current else None
    if permission.settled:
        return None
    expected = permission.expected
    act: Act = ("updated" if is_current else "granted") if expected.granted else "revoked"
    return Step(permission.ref, act, expected, expected)


async def run_permission_loop(context: Context, declaration: Declaration) -> None:
    """Run the permission loop until cancelled."""
    loop = _PermissionLoop(context, declaration)
    unsubscribe = context.rcb.on_change(lambda: loop.queue.add(_SCAN))
    loop.queue.add(_SCAN)
    for account in context.rcb.grantees():  # an earlier loop may have ended before it carried out a change
        loop.queue.add(account)
    try:
        await loop.queue.run()
    finally:
        unsubscribe()


def _judge(error: Exception) -> Verdict:
    """Raise NodeClosed, since no later attempt can succeed; retry other errors."""
    return Verdict.RAISE if isinstance(error, NodeClosed) else workqueue.judge(error)


class _PermissionLoop:
    """The queue of grantees, and the number of permissions of each that are not as expected."""

    def __init__(self, context: Context, declaration: Declaration) -> None:
        self.queue = WorkQueue("grants", self._handle, workers=_WORKERS, backoff=_BACKOFF, judge=_judge)
        self._context = context
        self._declaration = declaration
        self._pending: dict[str, int] = {}

    async def _handle(self, key: str) -> None:
        try:
            await (self._scan() if key == _SCAN else self._reconcile(key))
        finally:
            GRANTS_PENDING.labels(self._context.name).set(sum(self._pending.values()))
            LAST_GRANTS_PASS.labels(self._context.name).set(time.time())

    async def _scan(self) -> None:
        is_complete = await self._context.rcb.refresh()
        for account in self._context.rcb.take_changed_accounts():
            self.queue.add(account)
        if not is_complete:
            raise NotReady(f"not all permissions of {self._context.name} can be loaded: see its log")

    async def _reconcile(self, account: str) -> None:
        failed = await reconcile(self._context, self._declaration, account)
        if failed:
            self._pending[account] = failed
            raise NotReady(f"not all permissions of {account} on {self._context.name} are carried out: see its log")
        self._pending.pop(account, None)


async def reconcile(context: Context, declaration: Declaration, account: str) -> int:
    """Make one pass over the permissions of a grantee: carry out their changes and publish the grants.

    Returns:
        the number of changes that failed; the log says why. A failed publication counts as one.
    """
    steps = next_steps(context.rcb.permissions_of(account), declaration.implements)
    if any(step.act == "revoked" for step in steps):
        await _try_to_publish(context, AccountId(account))  # at once, since a handler may take its time
    failed = sum([not await _try(context, declaration, step) for step in steps])
    return failed + (not await _try_to_publish(context, AccountId(account)))


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
    async with context.transaction(f"grant/{context.rcb.id}/{step.ref.account}") as tx:
        await context.rcb.refresh_entry(step.ref.key)
        entry = context.rcb.find(step.ref)
        if entry is None or _step(entry, declaration.implements) != step:
            return
        handler = _handler(declaration, step)
        if handler is not None:
            async with asyncio.timeout(HANDLER_TIMEOUT_S):
                await handler(context, step.ref, step.grant)
        tx.stage(lambda: context.rcb.set_current(step.ref, step.grant))


def _handler(declaration: Declaration, step: Step) -> PermissionHandler | None:
    """Return the declared handler; None if there is nothing to do."""
    handlers = declaration.permissions.get((step.ref.contract, step.ref.name), NO_HANDLERS)
    if step.act == "granted":
        return handlers.granted
    if step.act == "revoked":
        return handlers.revoked
    return handlers.updated or handlers.granted


async def _try_to_publish(context: Context, account: AccountId) -> bool:
    """Publish to a grantee what is granted to it; return whether that succeeded.

    The unique map `granted-permissions:for-account:<accountId>` of the public group points (member `target`) to a map
    that only the grantee can read: permission key → params.
    """
    granted = {p.ref.key: p.expected.params for p in context.rcb.permissions_of(account) if p.in_force}
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
