"""Phase 4 on a running cluster: the Alpha in the cluster loads new images.

This code may be newer than that Alpha and may render other objects, so it only creates the requests, as Alpha's
account. The cluster previews them, and an RPC call to the Alpha in the cluster approves them.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from reside.access.addresses import replica_address
from reside.access.waiting import until
from reside.alpha import bootstrap, records
from reside.alpha.granting import control_blocks
from reside.common.polling import Missing
from reside.model import alpha_contract
from reside.model.constants import ALPHA_CONTRACT, ALPHA_NAME
from reside.model.endpoints import rpc_path
from reside.model.errors import NotReady
from reside.model.identities import resolved
from reside.model.permissions import Grant, PermissionRef
from reside.replica.client import call_method
from reside.seed.running import open_alpha, prepare

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reside.alpha.state import Alpha
    from reside.seed.settings import BootstrapSettings


async def upgrade(settings: BootstrapSettings, images: Sequence[str]) -> None:
    """Store the cluster's settings; load the images that are not current one by one, and wait until all of them run."""
    identities, found = await prepare(settings)
    async with (
        open_alpha(settings, identities, found) as alpha,
        replica_address(settings.target, ALPHA_NAME) as endpoint,
    ):
        await bootstrap.store_settings(alpha, settings.cluster())
        if all([await _is_current(alpha, image) for image in images]):
            return
        await _grant_approval(alpha, found.alpha, settings.deadline)

        async def approve(alpha: Alpha, number: int, revision: str) -> None:
            await call_method(
                alpha.context.http,
                identities.alpha,
                endpoint=endpoint,
                receiver=identities.alpha.account_id,
                path=rpc_path(ALPHA_NAME, ALPHA_CONTRACT, alpha_contract.APPROVE_LOAD_REQUEST),
                body={"id": number, "revision": revision},
                within_s=settings.deadline,
            )

        for image in images:
            await load_within(alpha, image, approve, settings.deadline)
            await _until_running(alpha, image, settings.deadline)


async def load_within(alpha: Alpha, image: str, approve: bootstrap.Approver, deadline: float) -> None:
    """Load one image.

    Raises:
        NotReady: the Alpha in the cluster or the Sentinel did not finish within `deadline` seconds.
    """
    try:
        async with asyncio.timeout(deadline):
            await bootstrap.load(alpha, image, approve)
    except TimeoutError:
        raise NotReady(
            f"the Alpha in the cluster did not load {image} within {deadline:.0f} s: see the logs of Alpha and the "
            "Sentinel for the reason, then run the bootstrap again"
        ) from None


async def _grant_approval(alpha: Alpha, block: str, deadline: float) -> None:
    """Write the expected permission to approve for Alpha's own account, and wait until Alpha has granted it."""
    permission = PermissionRef(alpha.account, ALPHA_CONTRACT, alpha_contract.APPROVE_REQUESTS)
    await control_blocks.add_expected(alpha.node, block, {permission: Grant(granted=True)})
    await alpha.node.flush()

    async def check() -> None:
        async with control_blocks.opened(alpha.node, block) as opened:
            entry = opened.find(permission)
        if entry is None or entry.current is None or not entry.current.granted:
            raise Missing(f"{permission.name} is not granted to Alpha's own account")

    await until(check, "Alpha's permission to approve load requests", deadline)


async def _is_current(alpha: Alpha, image: str) -> bool:
    identity, _, digest = resolved(image).partition("@")
    for record in await records.replicas_of(alpha.data, identity):
        current = record.value.current_version
        if current is not None and record.value.version(current).digest == digest:
            return True
    return False


async def _until_running(alpha: Alpha, image: str, deadline: float) -> None:
    identity = resolved(image).partition("@")[0]

    async def check() -> None:
        for record in await records.replicas_of(alpha.data, identity):
            current = record.value.version(record.value.current_version or 0)
            if current.status not in ("running", "completed"):
                raise Missing(f"version {current.id} of {record.value.name} is {current.status}")

    await until(check, f"the new version of {identity}", deadline)
