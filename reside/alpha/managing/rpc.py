"""Alpha's RPC methods that change replicas: for managers of all replicas, and for the owner of the replica."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from reside.alpha.bodies import CO_ID, Body
from reside.alpha.management import LABEL_VALUE, MAX_PODS
from reside.alpha.managing import canary, configure, deletion
from reside.model import alpha_contract
from reside.replica.typed_methods import parse_body

if TYPE_CHECKING:
    from reside.alpha.state import Alpha
    from reside.model.entities import Replica
    from reside.replica import Call, Json


class ReplicaBody(Body):
    """Body of the methods about one replica."""

    replica: int


class PlaceBody(ReplicaBody):
    """Body of place-replica; null is the default of the cluster."""

    placement_group: str | None = Field(pattern=rf"^{LABEL_VALUE}$")


class ScaleBody(ReplicaBody):
    """Body of scale-replica."""

    pods: int = Field(ge=1, le=MAX_PODS)


class OwnerBody(ReplicaBody):
    """Body of change-owner."""

    owner: str = Field(pattern=CO_ID)


class RefreshBody(ReplicaBody):
    """Body of refresh-replica; `digest` is the SHA-256 (hex) of the pod template."""

    digest: str = Field(pattern=r"^[0-9a-f]{64}$")


class CanaryBody(ReplicaBody):
    """Body of promote-canary and abort-canary; `version` is the id of the canary."""

    version: int


class DeleteBody(ReplicaBody):
    """Body of delete-replica; `revision` is that of the preview."""

    revision: str = Field(pattern=r"^[0-9a-f]{64}$")
    force: bool = False


async def enable(alpha: Alpha, call: Call) -> Json:
    """Serve enable-replica."""
    body = parse_body(ReplicaBody, call)
    return await _set_enabled(alpha, call, body.replica, enabled=True)


async def disable(alpha: Alpha, call: Call) -> Json:
    """Serve disable-replica."""
    body = parse_body(ReplicaBody, call)
    return await _set_enabled(alpha, call, body.replica, enabled=False)


async def place(alpha: Alpha, call: Call) -> Json:
    """Serve place-replica. An owner may not choose nodes, because they may be reserved for other replicas."""
    call.require(alpha_contract.MANAGE_REPLICAS)
    body = parse_body(PlaceBody, call)
    return _answer(await configure.set_placement(alpha, body.replica, body.placement_group))


async def scale(alpha: Alpha, call: Call) -> Json:
    """Serve scale-replica. An owner may not do it, because pods use the cluster's resources."""
    call.require(alpha_contract.MANAGE_REPLICAS)
    body = parse_body(ScaleBody, call)
    return _answer(await configure.set_pods(alpha, body.replica, body.pods))


async def change_owner(alpha: Alpha, call: Call) -> Json:
    """Serve change-owner."""
    body = parse_body(OwnerBody, call)
    await _require_manager(alpha, call, body.replica)
    return _answer(await configure.set_owner(alpha, body.replica, body.owner))


async def refresh(alpha: Alpha, call: Call) -> Json:
    """Serve refresh-replica."""
    body = parse_body(RefreshBody, call)
    await _require_manager(alpha, call, body.replica)
    return _answer(await configure.refresh_template(alpha, body.replica, body.digest))


async def promote_canary(alpha: Alpha, call: Call) -> Json:
    """Serve promote-canary. The approval of its load request covers the promotion."""
    body = parse_body(CanaryBody, call)
    await _require_manager(alpha, call, body.replica)
    return _answer(await canary.promote(alpha, body.replica, body.version))


async def abort_canary(alpha: Alpha, call: Call) -> Json:
    """Serve abort-canary."""
    body = parse_body(CanaryBody, call)
    await _require_manager(alpha, call, body.replica)
    return _answer(await canary.abort(alpha, body.replica, body.version))


async def preview_deletion(alpha: Alpha, call: Call) -> Json:
    """Serve preview-deletion."""
    body = parse_body(ReplicaBody, call)
    await _require_manager(alpha, call, body.replica)
    return (await deletion.preview(alpha, body.replica)).document()


async def delete(alpha: Alpha, call: Call) -> Json:
    """Serve delete-replica. It returns once the deletion is ordered. An owner may not force it on other replicas."""
    body = parse_body(DeleteBody, call)
    if body.force:
        call.require(alpha_contract.MANAGE_REPLICAS)
    await _require_manager(alpha, call, body.replica)
    return _answer(await deletion.delete(alpha, body.replica, body.revision, call.account, force=body.force))


async def _set_enabled(alpha: Alpha, call: Call, number: int, *, enabled: bool) -> Json:
    await _require_manager(alpha, call, number)
    is_manager = call.has(alpha_contract.MANAGE_REPLICAS)
    return _answer(await configure.set_enabled(alpha, number, call.account, enabled=enabled, is_manager=is_manager))


async def _require_manager(alpha: Alpha, call: Call, number: int) -> None:
    """Raise unless the caller manages all replicas or owns this one."""
    if call.has(alpha_contract.MANAGE_REPLICAS):
        return
    record = await configure.find(alpha, number)
    if record.value.owner != call.account:
        call.require(alpha_contract.MANAGE_REPLICAS)


def _answer(replica: Replica) -> Json:
    return {"id": replica.id, "name": replica.name}
