"""The Alpha replica: the methods, permissions and data of its contract, and its leader loop.

`replica()` returns a new declaration for each call, because the seed and tests run an Alpha of their own.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import structlog

from reside.alpha import contract, permissions, rpc
from reside.alpha.data import identity_repository, make_data, open_data, with_managers
from reside.alpha.granting import rpc as permission_rpc
from reside.alpha.lock_access import root_user
from reside.alpha.loop import lead
from reside.alpha.managing import rpc as replica_rpc
from reside.alpha.sentinel_client import SentinelClient
from reside.alpha.settings import AlphaSettings
from reside.alpha.state import Alpha
from reside.model import alpha_contract, identities
from reside.model.constants import ALPHA_CONTRACT
from reside.model.errors import InvalidInput
from reside.replica import Replica

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from reside.jazz import CoMap
    from reside.replica import Call, Context, Json

_log = structlog.get_logger(__name__)


def replica() -> Replica:
    """Declare Alpha."""
    alpha = Replica(contract.CONTRACT, lock_user=root_user)
    alpha.data(ALPHA_CONTRACT)(_data)
    for name in permissions.GROUP_ROLES:
        revoked = permissions.manager_revoked if name == alpha_contract.MANAGE_REPLICAS else permissions.revoked
        alpha.permission(ALPHA_CONTRACT, name, granted=permissions.granted, revoked=revoked)
    handlers: dict[str, Callable[[Alpha, Call], Awaitable[Json]]] = {
        alpha_contract.CREATE_LOAD_REQUEST: rpc.create,
        alpha_contract.APPROVE_LOAD_REQUEST: rpc.approve,
        alpha_contract.REJECT_LOAD_REQUEST: rpc.reject,
        alpha_contract.CLAIM_SUPER_ADMIN: _claim,
        alpha_contract.ENABLE_REPLICA: replica_rpc.enable,
        alpha_contract.DISABLE_REPLICA: replica_rpc.disable,
        alpha_contract.PLACE_REPLICA: replica_rpc.place,
        alpha_contract.SCALE_REPLICA: replica_rpc.scale,
        alpha_contract.CHANGE_OWNER: replica_rpc.change_owner,
        alpha_contract.REFRESH_REPLICA: replica_rpc.refresh,
        alpha_contract.PROMOTE_CANARY: replica_rpc.promote_canary,
        alpha_contract.ABORT_CANARY: replica_rpc.abort_canary,
        alpha_contract.PREVIEW_DELETION: replica_rpc.preview_deletion,
        alpha_contract.DELETE_REPLICA: replica_rpc.delete,
        alpha_contract.GRANT_PERMISSION: permission_rpc.grant,
        alpha_contract.REVOKE_PERMISSION: permission_rpc.revoke,
        alpha_contract.EXPLAIN_PERMISSION: permission_rpc.explained,
        alpha_contract.REQUEST_PERMISSION: permission_rpc.ask,
        alpha_contract.APPROVE_PERMISSION: permission_rpc.approve,
        alpha_contract.REJECT_PERMISSION: permission_rpc.reject,
    }
    for name, handler in handlers.items():
        alpha.method(ALPHA_CONTRACT, name)(_bound(handler))
    alpha.main(main)
    return alpha


async def main(context: Context) -> None:
    """Run the leader loop whenever no other Alpha leads."""
    await lead(await running(context))


@asynccontextmanager
async def started(settings: AlphaSettings, *, serve: bool = True) -> AsyncIterator[Alpha]:
    """Start Alpha without its leader loop, for the seed and tests; they run `lead(alpha)` as a task."""
    async with replica().start(settings, serve=serve) as context:
        yield await running(context)


async def running(context: Context) -> Alpha:
    """Return the state that Alpha's operations use, from a started replica."""
    settings = _settings(context)
    data = await open_data(context.node, context.data[ALPHA_CONTRACT])
    data = with_managers(data, permissions.managers(context))
    return Alpha(context, data, settings.cluster(), SentinelClient(context, data))


async def _data(context: Context) -> CoMap:
    async with context.transaction(context.node.unique_map_id(context.public.id, alpha_contract.ROOT_NAME)):
        root = (await make_data(context.node, context.public)).root
    if (settled := identity_repository(root)) != identities.repository():
        raise InvalidInput(
            f"the identities of this cluster are under {settled}, but this process of Alpha has the repository "
            f"{identities.repository()}: set {identities.VARIABLE}={settled} in its environment"
        )
    return root


def _bound(handler: Callable[[Alpha, Call], Awaitable[Json]]) -> Callable[[Call], Awaitable[Json]]:
    async def handle(call: Call) -> Json:
        return await handler(await running(call.context), call)

    return handle


async def _claim(alpha: Alpha, call: Call) -> Json:
    return await rpc.claim(alpha, call, _settings(alpha.context).claim_code)


def _settings(context: Context) -> AlphaSettings:
    if not isinstance(context.settings, AlphaSettings):
        raise InvalidInput("start Alpha with AlphaSettings")
    return context.settings
