"""Render a replica's stack from the current state, which this module reads for `reside.alpha.stacks.render`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reside.alpha import contracts
from reside.alpha.stacks.render import render

if TYPE_CHECKING:
    from reside.alpha.state import Alpha
    from reside.model.entities import Replica
    from reside.model.stacks import DesiredStack


async def render_replica(alpha: Alpha, replica: Replica) -> DesiredStack:
    """Return a replica's stack. Jobs of the desired stack that Alpha wrote last keep their pod templates."""
    last = await alpha.sentinel.read_desired(replica.name)
    rendered = {} if last is None else dict(zip(last.keys(), last.objects, strict=True))
    serving = await _serving(alpha, replica)
    return render(replica, alpha.cluster, owner=alpha.account, serving=serving, rendered=rendered)


async def _serving(alpha: Alpha, replica: Replica) -> set[str]:
    """Return the identities of the contracts with a method that a version of the replica implements."""
    implemented = {identity for version in replica.versions for identity in version.implementations.values()}
    entities = {identity: await contracts.find_contract(alpha.data, identity) for identity in implemented}
    return {identity for identity, entity in entities.items() if entity is not None and entity.get("methods")}
