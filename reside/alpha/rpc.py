"""Alpha's RPC methods: check the caller's permissions, validate the body, call the operation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from reside.alpha import claim as claiming
from reside.alpha.loading import approve as approving
from reside.alpha.loading.create import create_request
from reside.common.validation import describe_faults
from reside.model import alpha_contract
from reside.model.errors import InvalidInput

if TYPE_CHECKING:
    from typing import TypeVar

    from pydantic import SecretStr

    from reside.alpha.state import Alpha
    from reside.replica import Call, Json

    _B = TypeVar("_B", bound="_Body")

MAX_TEXT = 2000
MAX_NAME = 255


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, hide_input_in_errors=True)


class CreateBody(_Body):
    """Body of create-load-request; `spec` is the CoId of the load request's spec."""

    spec: str = Field(alias="wish", pattern=r"^co_z[1-9A-HJ-NP-Za-km-z]{10,60}$")


class ApproveBody(_Body):
    """Body of approve-load-request."""

    id: int
    revision: str = Field(max_length=MAX_NAME)
    name: str | None = Field(default=None, max_length=MAX_NAME)
    choices: dict[str, list[int]] = Field(default_factory=dict)


class RejectBody(_Body):
    """Body of reject-load-request."""

    id: int
    reason: str = Field(max_length=MAX_TEXT)


class ClaimBody(_Body):
    """Body of claim-super-admin."""

    code: str = Field(max_length=MAX_NAME, repr=False)


def parse(kind: type[_B], call: Call) -> _B:
    """Return the validated body of a call.

    Raises:
        InvalidInput: it is invalid; the message names the method and the members, never their values.
    """
    try:
        return kind.model_validate(call.body)
    except ValidationError as error:
        raise InvalidInput(f"{call.method}: {describe_faults(error, 'body')}") from None


async def create(alpha: Alpha, call: Call) -> Json:
    """Serve create-load-request: create a load request from the caller's spec."""
    call.require(alpha_contract.CREATE_REQUESTS)
    body = parse(CreateBody, call)
    record = await create_request(alpha, body.spec, call.account)
    return {"id": record.value.id, "loadRequest": record.map.id}


async def approve(alpha: Alpha, call: Call) -> Json:
    """Serve approve-load-request: approve a request at the revision that was previewed."""
    call.require(alpha_contract.APPROVE_REQUESTS)
    body = parse(ApproveBody, call)
    await approving.approve(alpha, body.id, body.revision, body.choices, body.name)
    return {"id": body.id}


async def reject(alpha: Alpha, call: Call) -> Json:
    """Serve reject-load-request."""
    call.require(alpha_contract.APPROVE_REQUESTS)
    body = parse(RejectBody, call)
    await approving.reject(alpha, body.id, body.reason)
    return {"id": body.id}


async def claim(alpha: Alpha, call: Call, code: SecretStr | None) -> Json:
    """Serve claim-super-admin; it needs the one-time code instead of a permission."""
    body = parse(ClaimBody, call)
    await claiming.claim(alpha, call.account, body.code, code)
    answer: dict[str, Any] = {"account": call.account}
    return answer
