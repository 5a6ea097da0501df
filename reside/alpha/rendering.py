"""Render a replica's stack from the current state, which this module reads for `reside.alpha.stacks.render`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reside.alpha.stacks.render import render

if TYPE_CHECKING:
    from reside.alpha.state import Alpha
    from reside.model.entities import Replica
    from reside.model.stacks import DesiredStack


async def render_replica(alpha: Alpha, replica: Replica) -> DesiredStack:
    """Return a replica's stack. Jobs of the desired stack that Alpha wrote last keep their pod templates."""
    last = await alpha.sentinel.read_desired(replica.name)
    rendered = {} if last is None else dict(zip(last.keys(), last.objects, strict=True))
    serving = {identity for identity, methods in (await _contracts(alpha)).items() if methods}
    return render(replica, alpha.cluster, owner=alpha.account, serving=serving, rendered=rendered)


async def _contracts(alpha: Alpha) -> dict[str, bool]:
    """Return for each contract, by identity, whether it has a method."""
    maps = [await alpha.node.load_map(co_id) for co_id in alpha.data.contracts.as_list()]
    return {str(entity.get("identity")): bool(entity.get("methods")) for entity in maps}
