"""Alpha's RPC methods: check the caller's permissions, validate the body, call the operation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import Field

from reside.alpha.bodies import CO_ID, MAX_NAME, MAX_TEXT, Body
from reside.alpha.granting import claim as claiming
from reside.alpha.loading import approve as approving
from reside.alpha.loading.create import create_request
from reside.model import alpha_contract
from reside.replica.typed_methods import parse_body

if TYPE_CHECKING:
    from pydantic import SecretStr

    from reside.alpha.state import Alpha
    from reside.replica import Call, Json


class CreateBody(Body):
    """Body of create-load-request; `spec` is the CoId of the load request's spec."""

    spec: str = Field(alias="wish", pattern=CO_ID)


class ApproveBody(Body):
    """Body of approve-load-request."""

    id: int
    revision: str = Field(max_length=MAX_NAME)
    name: str | None = Field(default=None, max_length=MAX_NAME)
    choices: dict[str, list[int]] = Field(default_factory=dict)


class RejectBody(Body):
    """Body of reject-load-request."""

    id: int
    reason: str = Field(max_length=MAX_TEXT)


class ClaimBody(Body):
    """Body of claim-super-admin."""

    code: str = Field(max_length=MAX_NAME, repr=False)


async def create(alpha: Alpha, call: Call) -> Json:
    """Serve create-load-request: create a load request from the caller's spec."""
    call.require(alpha_contract.CREATE_REQUESTS)
    body = parse_body(CreateBody, call)
    record = await create_request(alpha, body.spec, call.account)
    return {"id": record.value.id, "loadRequest": record.map.id}


async def approve(alpha: Alpha, call: Call) -> Json:
    """Serve approve-load-request: approve a request at the revision that was previewed."""
    call.require(alpha_contract.APPROVE_REQUESTS)
    body = parse_body(ApproveBody, call)
    await approving.approve(alpha, body.id, body.revision, body.choices, body.name, by=call.account)
    return {"id": body.id}


async def reject(alpha: Alpha, call: Call) -> Json:
    """Serve reject-load-request."""
    call.require(alpha_contract.APPROVE_REQUESTS)
    body = parse_body(RejectBody, call)
    await approving.reject(alpha, body.id, body.reason, by=call.account)
    return {"id": body.id}


async def claim(alpha: Alpha, call: Call, code: SecretStr | None) -> Json:
    """Serve claim-super-admin; it needs the one-time code instead of a permission."""
    body = parse_body(ClaimBody, call)
    await claiming.claim(alpha, call.account, body.code, code)
    answer: dict[str, Any] = {"account": call.account}
    return answer
