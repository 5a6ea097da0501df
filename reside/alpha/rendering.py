"""Render a replica's stack from the current state, which this module reads for `reside.alpha.stacks.render`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reside.alpha import contracts
from reside.alpha.stacks import templates
from reside.alpha.stacks.render import render
from reside.alpha.stacks.workload import Workload, render_workload

if TYPE_CHECKING:
    from reside.alpha.state import Alpha
    from reside.model.entities import Replica, TemplateChange
    from reside.model.stacks import DesiredStack


async def render_replica(alpha: Alpha, replica: Replica) -> DesiredStack:
    """Return a replica's stack. Versions of the desired stack that Alpha wrote last keep their pod templates."""
    last = await alpha.sentinel.read_desired(replica.name)
    rendered = {} if last is None else dict(zip(last.keys(), last.objects, strict=True))
    serving = await _serving(alpha, replica)
    return render(replica, alpha.cluster, owner=alpha.account, serving=serving, rendered=rendered)


def template_change(alpha: Alpha, replica: Replica, stack: DesiredStack) -> TemplateChange | None:
    """Compare the pod template of the current version in a stack with the one that Alpha renders now; None if equal."""
    if replica.current_version is None or replica.info.kind == "oneshot":
        return None
    workload = Workload(replica, replica.version(replica.current_version), runs=True)
    declared = dict(zip(stack.keys(), stack.objects, strict=True)).get(f"Deployment/{workload.name}")
    return None if declared is None else templates.template_change(render_workload(workload, alpha.cluster), declared)


async def _serving(alpha: Alpha, replica: Replica) -> set[str]:
    """Return the identities of the contracts with a method that a version of the replica implements."""
    implemented = {identity for version in replica.versions for identity in version.implementations.values()}
    entities = {identity: await contracts.find_contract(alpha.data, identity) for identity in implemented}
    return {identity for identity, entity in entities.items() if entity is not None and entity.get("methods")}
