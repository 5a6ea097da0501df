"""Phase 5: the platform's manifests become a stack of the Sentinel in the cluster; then it leaves its careful mode.

Invariant: careful mode ends only after the Sentinel reported the platform's stack as applied, so nothing of the
platform is ever unknown to a Sentinel that sweeps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reside.alpha import bootstrap
from reside.alpha import sentinel as declared
from reside.model.constants import PLATFORM_STACK, SENTINEL_NAME
from reside.model.errors import ResideError
from reside.seed import platform, sentinel
from reside.seed.connections import addresses
from reside.seed.running import open_alpha, prepare
from reside.seed.waiting import Missing, until

if TYPE_CHECKING:
    from reside.alpha.state import Alpha
    from stacks.settings import BootstrapSettings

ENGINE_VALUE = f"{SENTINEL_NAME}.engine-passphrase"


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


async def _until_applied(alpha: Alpha, revision: str, deadline: float) -> None:
    view = await declared.connect(alpha.context)

    async def look() -> None:
        report = await declared.read_report(alpha.node, view, PLATFORM_STACK)
        if report.error:
            raise ResideError(f"the Sentinel can't apply the stack {PLATFORM_STACK}: {report.error}")
        if report.revision != revision:
            raise Missing(f"the Sentinel reports revision {report.revision}, not {revision}")

    await until(look, f"the stack {PLATFORM_STACK}", deadline)
