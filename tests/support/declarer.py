"""An account that declares stacks to a running Sentinel, as Alpha does."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from support.eventually import eventually

from reside.jazz import AccountId, CoMap, Group, Node, ValueDeleted
from reside.model.constants import SENTINEL_CONTRACT
from reside.model.kinds import BY_KIND
from reside.model.sentinel_data import DESIRED, PREVIEW_RESULTS, PREVIEWS, REPORTS, live_map
from reside.model.stacks import DesiredStack, object_key
from reside.replica.profile import load_profile


@dataclass
class Declarer:
    """An account that declares stacks."""

    node: Node
    desired: CoMap
    previews: CoMap
    reports: CoMap
    results: CoMap
    group: Group
    """Group that owns the declared stacks; the Sentinel can read it."""
    maps: dict[str, CoMap] = field(default_factory=dict)

    async def declare(self, name: str, *objects: dict[str, Any], entry: bool = True) -> DesiredStack:
        """Declare a stack, or replace the objects of a declared one; without `entry`, do not list it as desired."""
        stack = DesiredStack(name, self.node.account_id, objects)
        if name in self.maps:
            self.maps[name].update(stack.document())
        else:
            self.maps[name] = self.group.create_map(stack.document())
        if entry and self.desired.get(name) != self.maps[name].id:
            self.desired.set(name, self.maps[name].id)
        await self.node.flush()
        return stack

    async def ask(self, key: str, name: str, *objects: dict[str, Any]) -> dict[str, Any]:
        """Request a preview, wait for its result, and return it."""
        stack = DesiredStack(name, self.node.account_id, objects)
        self.previews.set(key, self.group.create_map(stack.document()).id)
        await self.node.flush()

        def answers(found: Any) -> bool:
            return isinstance(found, dict) and found["revision"] in (stack.revision, "")

        result: dict[str, Any] = await eventually(
            f"the preview {key}", lambda: self.results.get(key), answers, within=60
        )
        return result

    async def report(self, name: str, holds: Callable[[dict[str, Any]], Any], seconds: float = 120) -> dict[str, Any]:
        """Wait until `holds` returns true for the report of a stack, and return the report, with what is live."""

        async def look() -> dict[str, Any] | None:
            found = self.reports.get(name)
            try:
                return await self._whole(await self.node.load_map(found)) if isinstance(found, str) else None
            except ValueDeleted:
                return None  # the report, or a map that it names, is just being replaced

        def matches(seen: dict[str, Any] | None) -> bool:
            return seen is not None and bool(holds(seen))

        report = await eventually(f"another report of {name}", look, matches, within=seconds)
        assert report is not None
        return report

    async def _whole(self, report: CoMap) -> dict[str, Any]:
        members = report.as_dict()
        for kind in BY_KIND:
            if (named := members.pop(live_map(kind), None)) is not None:
                for key, live in (await self.node.load_map(named)).as_dict().items():
                    members[key] = members.get(key, {}) | {"live": live}
        return members

    async def applied(self, stack: DesiredStack) -> dict[str, Any]:
        """Wait until this revision of a stack is applied, and return the report.

        What is live of an object, and with it the object's status, may be reported later: see `shown`.
        """
        return await self.report(stack.name, lambda now: now.get("revision") == stack.revision)

    async def shown(self, stack: DesiredStack) -> dict[str, Any]:
        """Wait until this revision of a stack is applied and its report shows all objects live, and return the report.

        The Sentinel learns what is live from its watches, which may be later than the end of an apply.
        """

        def is_shown(now: dict[str, Any]) -> bool:
            objects = [now.get(object_key(obj), {}) for obj in stack.objects]
            return now.get("revision") == stack.revision and all(
                each.get("status") == "updated" and each.get("live") for each in objects
            )

        return await self.report(stack.name, is_shown)


async def declarer(node: Node, sentinel: AccountId) -> Declarer:
    """Return a declarer for a node's account and the Sentinel with the account `sentinel`."""
    profile = await load_profile(node, sentinel)
    root = await node.load_map(str(profile.contracts[SENTINEL_CONTRACT]))
    names = (DESIRED, PREVIEWS, REPORTS, PREVIEW_RESULTS)
    desired, previews, reports, results = [await node.load_map(root[name]) for name in names]
    group = node.create_group()
    await group.add_member(sentinel, "reader")
    await node.flush()
    return Declarer(node, desired, previews, reports, results, group)
