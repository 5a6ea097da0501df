"""The Sentinel as Alpha sees it: its data in Jazz. Alpha declares stacks and candidates there and reads reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reside.model.constants import SENTINEL_CONTRACT
from reside.model.errors import NotReady
from reside.model.stacks import DesiredStack, ObjectReport, StackPreview, StackReport

if TYPE_CHECKING:
    from reside.alpha.data import AlphaData
    from reside.jazz import CoMap, Node
    from reside.replica import Context

_MEMBERS = ("desired", "previews", "reports", "previewResults")


@dataclass(frozen=True)
class SentinelData:
    """The maps of the Sentinel's data."""

    desired: CoMap
    previews: CoMap
    reports: CoMap
    results: CoMap


async def connect(context: Context) -> SentinelData:
    """The Sentinel's data.

    Raises:
        NotReady: the control block names no Sentinel yet, or it has not published its data.
    """
    peers = await context.peers(SENTINEL_CONTRACT)
    if not peers:
        raise NotReady("no Kubernetes Sentinel is connected: the control block of Alpha names none yet")
    root = await peers[0].data()
    missing = [member for member in _MEMBERS if not isinstance(root.get(member), str)]
    if missing:
        raise NotReady(f"the data of {peers[0].name} lacks {', '.join(missing)}: it has not started yet")
    maps = [await context.node.load_map(root[member]) for member in _MEMBERS]
    return SentinelData(*maps)


async def read_report(node: Node, sentinel: SentinelData, stack: str) -> StackReport:
    """What the Sentinel reports of a stack; an empty report if it has never reported."""
    target = sentinel.reports.get(stack)
    if not isinstance(target, str):
        return StackReport()
    return parse_report((await node.load_map(target)).as_dict())


def parse_report(members: dict[str, Any]) -> StackReport:
    """A report out of its map's members; what is malformed is left out."""
    revision, error = members.get("revision"), members.get("error")
    parsed = {key: ObjectReport.parse(value) for key, value in members.items() if "/" in key}
    return StackReport(
        revision if isinstance(revision, str) else None,
        error if isinstance(error, str) and error else None,
        {key: report for key, report in parsed.items() if report is not None},
    )


def parse_preview(data: Any) -> StackPreview | None:
    """A preview out of its document; None if it is none."""
    try:
        return StackPreview.parse(data)
    except (KeyError, TypeError):
        return None


async def read_stack(data: AlphaData, unique: str) -> tuple[CoMap, DesiredStack] | None:
    """The stack that stands in Alpha's group ``stacks`` under a name, with its map."""
    found = await data.node.find_unique_map(data.stacks_group.id, unique)
    objects = None if found is None else found.get("objects")
    if found is None or not isinstance(objects, list):
        return None
    return found, DesiredStack(found["name"], found["owner"], tuple(objects))


async def write_stack(data: AlphaData, unique: str, stack: DesiredStack) -> CoMap:
    """Write a stack into Alpha's group ``stacks`` under a name, all members in one transaction."""
    members = {
        "name": stack.name,
        "owner": stack.owner,
        "revision": stack.revision,
        "objects": list(stack.objects),
    }
    found = await data.node.unique_map(data.stacks_group, unique, members)
    if found.get("revision") != stack.revision or found.get("objects") != members["objects"]:
        found.update(members)
    return found


def name_in(registry: CoMap, key: str, target: CoMap) -> None:
    """Let ``key`` of the Sentinel's map ``registry`` name ``target``."""
    if registry.get(key) != target.id:
        registry.set(key, target.id)
