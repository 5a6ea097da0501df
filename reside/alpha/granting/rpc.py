"""Alpha's RPC methods for permissions of accounts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import Field

from reside.alpha.bodies import CO_ID, MAX_NAME, MAX_TEXT, Body
from reside.alpha.granting import decide, explain
from reside.alpha.granting.decide import Order
from reside.model import alpha_contract
from reside.replica.typed_methods import parse_body

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from reside.alpha.state import Alpha
    from reside.model.entities import DirectGrant
    from reside.replica import Call, Json

    _Decide = Callable[[Alpha, Order, str, str], Awaitable[DirectGrant]]


class PermissionBody(Body):
    """Body of request-permission: the permission that the caller asks for."""

    replica: int
    contract: str = Field(max_length=MAX_NAME)
    permission: str = Field(max_length=MAX_NAME)
    instance_id: str | None = Field(default=None, max_length=MAX_NAME)
    params: dict[str, Any] = Field(default_factory=dict)
    reason: str = Field(default="", max_length=MAX_TEXT)

    def order(self, account: str) -> Order:
        """Return the permission as that of an account."""
        return Order(account, self.replica, self.contract, self.permission, self.instance_id, self.params)


class AccountPermissionBody(PermissionBody):
    """Body of the methods that decide on a permission of another account."""

    account: str = Field(pattern=CO_ID)


async def grant(alpha: Alpha, call: Call) -> Json:
    """Serve grant-permission."""
    return await _decide(alpha, call, decide.grant)


async def approve(alpha: Alpha, call: Call) -> Json:
    """Serve approve-permission: grant what a replica has asked for."""
    return await _decide(alpha, call, decide.approve)


async def reject(alpha: Alpha, call: Call) -> Json:
    """Serve reject-permission."""
    return await _decide(alpha, call, decide.reject)


async def revoke(alpha: Alpha, call: Call) -> Json:
    """Serve revoke-permission."""
    return await _decide(alpha, call, decide.revoke)


async def ask(alpha: Alpha, call: Call) -> Json:
    """Serve request-permission, for the account of the caller, which may watch the map of its direct grants."""
    body = parse_body(PermissionBody, call)
    stored = await decide.ask(alpha, body.order(call.account), body.reason)
    return stored.document() | {alpha_contract.DIRECT_GRANTS: alpha.data.direct_grants[call.account]}


async def explained(alpha: Alpha, call: Call) -> Json:
    """Serve explain-permission; every account may ask about its own permissions."""
    body = parse_body(AccountPermissionBody, call)
    if body.account != call.account:
        call.require(alpha_contract.MANAGE_PERMISSIONS)
    return await explain.explain(alpha, body.order(body.account))


async def _decide(alpha: Alpha, call: Call, decided: _Decide) -> Json:
    call.require(alpha_contract.MANAGE_PERMISSIONS)
    body = parse_body(AccountPermissionBody, call)
    return (await decided(alpha, body.order(body.account), call.account, body.reason)).document()
