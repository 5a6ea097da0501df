"""A fake Sentinel: a real replica with the Sentinel's data in Jazz, but without a cluster.

A declared stack is reported as applied immediately, unless the test prevents it. The end-to-end tests run Alpha with
the real Sentinel.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from reside.alpha.contract import PACKAGED
from reside.jazz import AccountId, CoMap, JazzError, ValueDeleted
from reside.model import sentinel_data
from reside.model.constants import SENTINEL_CONTRACT
from reside.model.errors import InvalidInput
from reside.model.kinds import KINDS
from reside.model.previews import ObjectChange, StackPreview
from reside.model.reports import ObjectReport, StackReport
from reside.model.sentinel_data import (
    DECLARERS_GROUP,
    DESIRED,
    MAPS_BY_GROUP,
    PREVIEW_RESULTS,
    PREVIEWS,
    REPORTS,
    REPORTS_GROUP,
    live_group,
    live_map,
)
from reside.model.stacks import DesiredStack, object_key
from reside.replica import Replica
from reside.sentinel.contract.data import REPLACE_AFTER as PREVIEWS_REPLACED_AFTER
from reside.sentinel.objects.live import reported
from reside.sentinel.term.live_maps import REPLACE_AFTER, change
from reside.sentinel.term.reports import difference

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from reside.model.permissions import Grant, PermissionRef
    from reside.replica import Context, ReplicaSettings

_RETRY_S = 0.2


@dataclass
class Orders:
    """How the fake cluster behaves, as a test sets it, and what it has seen.

    Attributes:
        hold: workloads (`Kind/name`) that start but never become ready.
        problems: what keeps the pods of a workload (`Kind/name`) from running.
        violations: policy violations in every preview.
        live: `Kind/name` → live version in every preview.
        previewing: whether previews are made.
        reporting: whether declared stacks are applied and reported.
        seen: stack → the desired numbers of pods by Deployment, one entry for each change, in order.
    """

    hold: set[str] = field(default_factory=set)
    problems: dict[str, str] = field(default_factory=dict)
    violations: tuple[str, ...] = ()
    live: dict[str, str] = field(default_factory=dict)
    previewing: bool = True
    reporting: bool = True
    seen: dict[str, list[dict[str, int]]] = field(default_factory=dict)


async def _data(context: Context) -> CoMap:
    node = context.node
    root = await node.unique_map(context.public, sentinel_data.ROOT_NAME)
    for member, maps in MAPS_BY_GROUP.items():
        if member not in root:
            root.set(member, node.create_group(member).id)
        group = await node.load_group(root[member])
        for name in maps:
            if name not in root:
                root.set(name, group.create_map().id)
    for kind in KINDS:
        if live_group(kind.kind) not in root:
            root.set(live_group(kind.kind), node.create_group(kind.plural).id)
    await node.flush()
    return root


async def _granted(context: Context, ref: PermissionRef, _grant: Grant) -> None:
    root = context.data[SENTINEL_CONTRACT]
    await (await context.node.load_group(root[DECLARERS_GROUP])).add_member(AccountId(ref.account), "writer")
    for group in (REPORTS_GROUP, *(live_group(kind.kind) for kind in KINDS)):
        await (await context.node.load_group(root[group])).add_member(AccountId(ref.account), "reader")


def replica() -> Replica:
    """Return a replica with the Sentinel's contract, data and permissions."""
    sentinel = Replica(PACKAGED[SENTINEL_CONTRACT])
    sentinel.data(SENTINEL_CONTRACT)(_data)
    for kind in KINDS:
        sentinel.permission(SENTINEL_CONTRACT, kind.manage, granted=_granted)
    return sentinel


class Cluster:
    """Reports declared stacks as applied, and makes previews."""

    def __init__(self, context: Context, orders: Orders) -> None:
        self._context = context
        self._orders = orders
        self._pods: dict[str, int] = {}
        self._changed = asyncio.Event()
        self._watched: set[str] = set()
        self._stacks: dict[str, str] = {}
        self._dirty: set[str] = set()

    def process_again(self) -> None:
        """Process all stacks and previews again, because the test has changed the orders."""
        self._stacks.clear()
        self._changed.set()

    async def run(self) -> None:
        """Process declared stacks and previews until cancelled; go on after an outage of Jazz, as the Sentinel does."""
        while True:
            self._changed.clear()
            try:
                await self._process()
            except JazzError:
                self._stacks.clear()
                await asyncio.sleep(_RETRY_S)
            else:
                await self._changed.wait()

    async def _process(self) -> None:
        node, root = self._context.node, self._context.data[SENTINEL_CONTRACT]
        names = (DESIRED, PREVIEWS, REPORTS, PREVIEW_RESULTS)
        maps = {member: await node.load_map(root[member]) for member in names}
        for member in (DESIRED, PREVIEWS):
            self._follow(maps[member])
        dirty, self._dirty = self._dirty, set()
        for name, target in list(maps[DESIRED].items()):
            if name in dirty or self._stacks.get(name) != target:
                self._stacks[name] = target
                stack = await self._stack(target, name)
                if stack is None:
                    del self._stacks[name]
                else:
                    await self._apply(maps[REPORTS], name, stack)
        for name in [name for name in maps[REPORTS] if name not in maps[DESIRED] and self._orders.reporting]:
            maps[REPORTS].delete(name)
        for key, target in list(maps[PREVIEWS].items()):
            candidate = await self._stack(target)
            if candidate is not None:
                await self._preview(maps[PREVIEW_RESULTS], key, candidate)
        await node.flush()
        if max(maps[PREVIEWS].transaction_count, maps[PREVIEW_RESULTS].transaction_count) >= PREVIEWS_REPLACED_AFTER:
            await self.replace_previews()

    async def replace_previews(self) -> None:
        """Replace the maps of candidates and results by empty ones, as the Sentinel does when their logs are long."""
        node, root = self._context.node, self._context.data[SENTINEL_CONTRACT]
        before = [await node.load_map(root[name]) for name in (PREVIEWS, PREVIEW_RESULTS)]
        root.update(
            {name: old.group.create_map().id for name, old in zip((PREVIEWS, PREVIEW_RESULTS), before, strict=True)}
        )
        await node.flush()
        for old in before:
            old.destroy()
        self._changed.set()

    def _follow(self, value: CoMap) -> None:
        if value.id not in self._watched:
            self._watched.add(value.id)
            value.on_change(lambda _: self._changed.set())

    async def _stack(self, target: str, name: str | None = None) -> DesiredStack | None:
        """Return the stack in a map; None if it is none.

        Or if Alpha has replaced or withdrawn it, which changes its entry, too.
        """
        try:
            found = await self._context.node.load_map(target)
        except ValueDeleted:
            return None
        if name is not None and target not in self._watched:
            self._watched.add(target)
            found.on_change(lambda _: self._stack_changed(name))
        try:
            return DesiredStack.parse(found.as_dict())
        except InvalidInput:
            return None

    def _stack_changed(self, name: str) -> None:
        self._dirty.add(name)
        self._changed.set()

    async def _preview(self, results: CoMap, key: str, stack: DesiredStack) -> None:
        changes = tuple(
            ObjectChange(object_key(o), "create", (), self._orders.live.get(object_key(o))) for o in stack.objects
        )
        preview = StackPreview(stack.name, stack.revision, changes, self._orders.violations)
        if self._orders.previewing and results.get(key) != preview.document():
            results.set(key, preview.document())

    async def _apply(self, reports: CoMap, name: str, stack: DesiredStack) -> None:
        if not self._orders.reporting:
            return
        wanted = {o["metadata"]["name"]: o["spec"]["replicas"] for o in stack.objects if o["kind"] == "Deployment"}
        history = self._orders.seen.setdefault(name, [])
        if not history or history[-1] != wanted:
            history.append(wanted)
        made = StackReport(stack.revision, None, {object_key(each): self._report(each) for each in stack.objects})
        report = await self._context.node.load_map(reports[name]) if name in reports else None
        present = {} if report is None else report.as_dict()
        members = made.document() | await self._write_live(present, made)
        if report is None or (present != members and report.transaction_count >= REPLACE_AFTER):
            reports.set(name, reports.group.create_map(members).id)
            if report is not None:
                report.destroy()
        else:
            change(report, *difference(present, members))
        for co_id in _named(present) - _named(members):
            (await self._context.node.load_map(co_id)).destroy()

    async def _write_live(self, present: dict[str, Any], made: StackReport) -> dict[str, str]:
        """Write what is live of each kind to a map of its own; return the members of the report that name them."""
        node, root = self._context.node, self._context.data[SENTINEL_CONTRACT]
        found = {}
        for kind, live in made.live_by_kind().items():
            member = live_map(kind)
            target = await node.load_map(present[member]) if member in present else None
            before = {} if target is None else target.as_dict()
            if target is None or (before != live and target.transaction_count >= REPLACE_AFTER):
                target = (await node.load_group(root[live_group(kind)])).create_map(dict(live))
            else:
                change(target, *difference(before, live))
            found[member] = str(target.id)
        return found

    def _report(self, manifest: dict[str, Any]) -> ObjectReport:
        pods = {"Deployment": manifest.get("spec", {}).get("replicas"), "Job": 0}
        problem = self._orders.problems.get(object_key(manifest))
        return ObjectReport("updated", self._live(manifest), None, pods.get(manifest["kind"]), problem)

    def _live(self, manifest: dict[str, Any]) -> dict[str, Any]:
        live = reported(manifest)
        if manifest["kind"] == "Secret":
            live["data"] = {"accountId": "***", "agentSecret": "***"}
        if manifest["kind"] == "Deployment":
            wanted = manifest["spec"]["replicas"]
            ready = 0 if object_key(manifest) in self._orders.hold else wanted
            conditions = [{"type": "Available", "status": "True" if ready >= wanted else "False"}]
            live["status"] = {"replicas": wanted, "readyReplicas": ready, "conditions": conditions}
        if manifest["kind"] == "Job":
            live["status"] = {"conditions": [{"type": "Complete", "status": "True"}]}
        return live


def _named(report: dict[str, Any]) -> set[str]:
    """Return the ids of the maps of live objects that the members of a report name."""
    return {report[member] for kind in KINDS if (member := live_map(kind.kind)) in report}


@asynccontextmanager
async def fake_sentinel(settings: ReplicaSettings, orders: Orders) -> AsyncIterator[Cluster]:
    """Run a fake Sentinel while the block is open."""
    async with replica().start(settings) as context:
        cluster = Cluster(context, orders)
        task = asyncio.create_task(cluster.run())
        try:
            yield cluster
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task  # raises its failure
