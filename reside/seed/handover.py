"""Phase 5: the platform's manifests become a stack of the Sentinel in the cluster; then it leaves its careful mode.

Invariant: careful mode ends only after the Sentinel reported the platform's stack as applied, so nothing of the
platform is ever unknown to a Sentinel that sweeps.

What the Sentinel can't apply it tries again, with a growing pause, and reports the last error until it succeeds. So an
error may pass by itself, or be one of a declaration before; it ends the hand-over only when it stays.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from reside.access.addresses import addresses
from reside.access.waiting import Missing, until
from reside.alpha import bootstrap
from reside.alpha import sentinel as declared
from reside.model.constants import PLATFORM_STACK, SENTINEL_NAME
from reside.model.errors import ResideError
from reside.seed import platform, sentinel
from reside.seed.running import open_alpha, prepare

if TYPE_CHECKING:
    from reside.alpha.state import Alpha
    from reside.seed.settings import BootstrapSettings

ENGINE_VALUE = f"{SENTINEL_NAME}.engine-passphrase"
PATIENCE_S = 40.0
"""Seconds that one and the same error may stand: the Sentinel's tries 1, 3, 7, 15 and 31 seconds after the first."""


async def hand_over(settings: BootstrapSettings) -> None:
    """Declare the stack ``platform``, wait until it is applied, end careful mode."""
    identities, blocks = await prepare(settings)
    async with open_alpha(settings, identities, blocks) as alpha:
        value = await alpha.node.unique_map(alpha.data.secrets_group, ENGINE_VALUE)
        if "value" not in value:
            value.set("value", identities.engine_passphrase.get_secret_value())
            await alpha.node.flush()
        objects = platform.platform_stack(settings, value.id)
        revision = await bootstrap.declare_stack(alpha, PLATFORM_STACK, objects)
        await _until_applied(alpha, revision, settings.deadline)
    async with addresses(settings.target) as where:
        await sentinel.end_careful_mode(where.jazz, identities.sentinel)


class Standing:
    """For how long the same error has been reported.

    Args:
        patience: seconds after which an error that stays counts as one that does not pass by itself.
    """

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._error: str | None = None
        self._since = 0.0

    def lasts(self, error: str | None, now: float) -> bool:
        """Note what is reported at the time ``now`` (seconds); whether it is an error that has stayed too long."""
        if error != self._error:
            self._error, self._since = error, now
        return error is not None and now - self._since >= self._patience


async def _until_applied(alpha: Alpha, revision: str, deadline: float) -> None:
    view = await declared.connect(alpha.context)
    standing = Standing(PATIENCE_S)

    async def look() -> None:
        report = await declared.read_report(alpha.node, view, PLATFORM_STACK)
        if standing.lasts(report.error, time.monotonic()):
            raise ResideError(f"the Sentinel can't apply the stack {PLATFORM_STACK}, and tries on: {report.error}")
        if report.error:
            raise Missing(f"the Sentinel reports: {report.error}")
        if report.revision != revision:
            raise Missing(f"the Sentinel reports revision {report.revision}, not {revision}")

    await until(look, f"the stack {PLATFORM_STACK}", deadline)
