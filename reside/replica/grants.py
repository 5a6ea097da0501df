"""The permission loop: make current grants equal to expected grants (docs/model.md, section 4).

Level-triggered: each pass compares `expected` with `current` for permissions of one grantee: at start for all of them,
after a change in the control block for those that may have changed. So the size of the block does not matter.
Grantees are independent: a handler that fails or hangs delays only its own.
`current` is written only after the handler has succeeded. A handler that fails leaves it unchanged; the failure is
logged, and the handler is retried with back-off.

A permission that this version of the replica does not implement is never granted. If an earlier version granted it,
that grant ends.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import structlog

from reside.common import workqueue
from reside.common.backoff import Backoff
from reside.common.transience import safe_text
from reside.common.workqueue import Verdict, WorkQueue
from reside.jazz import AccountId, NodeClosed
from reside.model.errors import NotReady
from reside.model.permissions import Grant
from reside.replica.declaration import NO_HANDLERS
from reside.replica.health import GRANTS_FAILED, GRANTS_PENDING, LAST_GRANTS_PASS
from reside.replica.publications import Publications

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
"""The key of the pass that loads new and replaced entries of the block; no account has this id."""

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
    loop = PermissionLoop(context, declaration)
    unsubscribe = context.rcb.on_change(loop.note_changes)
    loop.start()
    try:
        await loop.queue.run()
    finally:
        unsubscribe()


def _judge(error: Exception) -> Verdict:
    """Raise NodeClosed, since no later attempt can succeed; retry other errors."""
    return Verdict.RAISE if isinstance(error, NodeClosed) else workqueue.judge(error)


class PermissionLoop:
    """The queue of grantees, and for each the keys of the permissions that its next pass looks at.

    Attributes:
        queue: the grantees whose pass is due.
    """

    def __init__(self, context: Context, declaration: Declaration) -> None:
        self.queue = WorkQueue("grants", self._handle, workers=_WORKERS, backoff=_BACKOFF, judge=_judge)
        self._context = context
        self._declaration = declaration
        self._publications = Publications(context)
        self._due: dict[str, set[str] | None] = {}  # None: all permissions of the grantee
        self._failed: dict[str, int] = {}
        self._pending = GRANTS_PENDING.labels(context.name)
        self._last_pass = LAST_GRANTS_PASS.labels(context.name)

    def start(self) -> None:
        """Queue all grantees: an earlier loop may have ended before it carried out or published a change."""
        self._context.rcb.take_changed()
        for account in self._context.rcb.grantees():
            self._add(account, None)
        self.queue.add(_SCAN)

    def note_changes(self) -> None:
        """Queue the grantees whose permissions may have changed, and a pass that loads new entries."""
        for account, keys in self._context.rcb.take_changed().items():
            self._add(account, keys)
        if self._context.rcb.has_unread():
            self.queue.add(_SCAN)

    def _add(self, account: str, keys: set[str] | None) -> None:
        self._due[account] = _union(self._due.get(account, set()), keys)
        self.queue.add(account)

    async def _handle(self, key: str) -> None:
        try:
            await (self._scan() if key == _SCAN else self._make_pass(key))
        finally:
            self._pending.set(sum(self._failed.values()))
            self._last_pass.set(time.time())

    async def _scan(self) -> None:
        if not await self._context.rcb.refresh():
            raise NotReady(f"not all permissions of {self._context.name} can be loaded: see its log")

    async def _make_pass(self, account: str) -> None:
        failed = await self.reconcile(account)
        if failed:
            self._failed[account] = failed
            raise NotReady(f"not all permissions of {account} on {self._context.name} are carried out: see its log")
        self._failed.pop(account, None)

    async def reconcile(self, account: str) -> int:
        """Make one pass over the permissions of a grantee that are due: carry out their changes and publish the grants.

        If one fails, all that it looked at are due again.

        Returns:
            the number of changes that failed; the log says why. A failed publication counts as one.
        """
        keys, failed = self._due.pop(account, set()), -1
        try:
            failed = await self._carry_out(account, keys)
            # What was carried out is a change of the block, too. Publish after it, and not once for each of the two.
            meanwhile = self._due.pop(account, set())
            keys = _union(keys, meanwhile)
            failed += await self._carry_out(account, meanwhile)
            if keys is None or keys:
                failed += not await self._publications.publish(AccountId(account), keys)
        finally:
            if failed:
                self._due[account] = _union(self._due.get(account, set()), keys)
        return failed

    async def _carry_out(self, account: str, keys: set[str] | None) -> int:
        """Carry out changes of a grantee, and return the number of those that failed."""
        context, declaration = self._context, self._declaration
        steps = next_steps(context.rcb.permissions_of(account, keys), declaration.implements)
        if any(step.act == "revoked" for step in steps):
            await self._publications.publish(AccountId(account), keys)  # at once, since a handler may take its time
        return sum([not await _try(context, declaration, step) for step in steps])


def _union(keys: set[str] | None, more: set[str] | None) -> set[str] | None:
    return None if keys is None or more is None else keys | more


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
