"""Phase 5: make the platform's objects a stack of the Sentinel in the cluster, then end careful mode.

Invariant: careful mode ends only after the Sentinel has reported the stack `platform` as applied. A Sentinel that
prunes therefore knows all objects of the platform.

The Sentinel retries a failed apply with back-off and reports the last error until it succeeds. A reported error may
thus be temporary, or belong to an earlier declaration. The hand-over fails only if the same error persists.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from reside.access.addresses import jazz_address
from reside.access.waiting import until
from reside.alpha import bootstrap
from reside.common.polling import Missing
from reside.model.constants import PLATFORM_STACK, SENTINEL_NAME
from reside.model.errors import NotReady, ResideError
from reside.model.sentinel_data import REFERENCED_VALUE
from reside.seed import platform, running, sentinel

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from reside.alpha.bootstrap import SystemBlocks
    from reside.alpha.state import Alpha
    from reside.model.stacks import K8sObject
    from reside.seed.accounts import Identities
    from reside.seed.settings import BootstrapSettings

ENGINE_VALUE = f"{SENTINEL_NAME}.engine-passphrase"
PERSISTENT_S = 40.0
"""Seconds for which the same error may persist; the Sentinel retries 1, 3, 7, 15 and 31 s after the first apply."""
MARGIN_S = 10.0
"""Seconds for an error of the wait itself, which says what was missing, to arrive before that of the thread."""


def hand_over(settings: BootstrapSettings, record_end: Callable[[str], None]) -> None:
    """Declare the stack `platform`, wait until it is applied, and end careful mode.

    Args:
        settings: the cluster's settings.
        record_end: records the end of the phase and the id of Alpha's account. It is called before careful mode ends:
            the Sentinel then deletes the seed's Job with its access rights. A seed that dies in between runs again, and
            records that it has begun.
    """
    identities, blocks = running.prepared(settings)
    alpha = running.connected_alpha()
    if alpha is not None:
        what = f"the stack {PLATFORM_STACK} is applied"
        alpha.run(lambda found: _apply(found, settings, identities), settings.deadline + MARGIN_S, what)
    else:
        asyncio.run(_apply_with_own(settings, identities, blocks))
    record_end(identities.alpha.account_id)
    asyncio.run(_end_careful_mode(settings, identities))
    running.stop()


async def declare(alpha: Alpha, settings: BootstrapSettings, identities: Identities) -> str:
    """Declare the stack `platform`, with the engine's passphrase as a value in Jazz; return its revision."""
    value = await alpha.node.unique_map(alpha.data.secrets_group, ENGINE_VALUE)
    if REFERENCED_VALUE not in value:
        value.set(REFERENCED_VALUE, identities.engine_passphrase.get_secret_value())
        await alpha.node.flush()
    return await declared(alpha, platform.platform_stack(settings, value.id), settings.deadline)


async def declared(alpha: Alpha, objects: Sequence[K8sObject], deadline: float) -> str:
    """Declare the stack `platform` as soon as Alpha can reach the Sentinel; return its revision.

    After a bootstrap that was killed, the control block of Alpha may name no Sentinel until Alpha has led for a moment.

    Raises:
        NotReady: the Sentinel can't be reached in time; the message says why.
    """

    async def declare_it() -> str:
        try:
            return await bootstrap.declare_stack(alpha, PLATFORM_STACK, objects)
        except NotReady as error:
            raise Missing(str(error)) from None

    return await until(declare_it, f"the declaration of the stack {PLATFORM_STACK}", deadline)


async def _apply(alpha: Alpha, settings: BootstrapSettings, identities: Identities) -> None:
    await _until_applied(alpha, await declare(alpha, settings, identities), settings.deadline)


async def _apply_with_own(settings: BootstrapSettings, identities: Identities, blocks: SystemBlocks) -> None:
    async with running.open_alpha(settings, identities, blocks) as alpha:
        await _apply(alpha, settings, identities)


async def _end_careful_mode(settings: BootstrapSettings, identities: Identities) -> None:
    async with jazz_address(settings.target) as jazz:
        await sentinel.end_careful_mode(jazz, identities.sentinel)


class ErrorTimer:
    """Measure for how long the same error has been reported.

    Args:
        limit: seconds after which an unchanged error counts as permanent.
    """

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._error: str | None = None
        self._since = 0.0

    def has_expired(self, error: str | None, now: float) -> bool:
        """Record the error reported at time `now` (seconds); return whether it has persisted for the limit."""
        if error != self._error:
            self._error, self._since = error, now
        return error is not None and now - self._since >= self._limit


async def _until_applied(alpha: Alpha, revision: str, deadline: float) -> None:
    timer = ErrorTimer(PERSISTENT_S)

    async def check() -> None:
        report = await alpha.sentinel.read_report(PLATFORM_STACK)
        if timer.has_expired(report.error, time.monotonic()):
            raise ResideError(f"the Sentinel can't apply the stack {PLATFORM_STACK} and retries it: {report.error}")
        if report.error:
            raise Missing(f"the Sentinel reports: {report.error}")
        if report.revision != revision:
            raise Missing(f"the Sentinel reports revision {report.revision}, not {revision}")

    await until(check, f"the stack {PLATFORM_STACK}", deadline)
