"""Previews: the stack that a load request would lead to, and what the Sentinel says of it.

A candidate is rendered like any stack, with the new version as the current one. What a new instance does not have yet
(account, control block) stands as a placeholder: it changes no rule and no change list. A candidate never changes: each
has a key of its own in the Sentinel's ``previews``, made of request and revision.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reside.alpha import records, sentinel
from reside.alpha.stacks.render import render
from reside.model.entities import Management, Replica, ReplicaVersion
from reside.model.stacks import StackPreview

if TYPE_CHECKING:
    from reside.alpha.sentinel import SentinelData
    from reside.alpha.state import Alpha
    from reside.model.entities import ApproveRequest
    from reside.model.stacks import DesiredStack

PENDING: Final = "pending"
"""Stands for what a new instance gets when it is made."""
UNREAD: Final = ""
"""Revision in the preview of a candidate that the Sentinel could not read; its error says why."""


def version_of(approved: ApproveRequest, number: int, image: str) -> ReplicaVersion:
    """The version that an approve request leads to."""
    return ReplicaVersion(
        id=number,
        image=image,
        digest=approved.digest,
        display_info=approved.display_info,
        implementations=approved.implementations,
        requirements=approved.requirements,
    )


def next_version(replica: Replica | None) -> int:
    """Id of the version after the latest one."""
    return max((version.id for version in replica.versions), default=0) + 1 if replica else 1


def with_version(approved: ApproveRequest, existing: Replica | None, image: str) -> Replica:
    """The replica as it would stand after the load."""
    version = version_of(approved, next_version(existing), image)
    if existing is None:
        return Replica(
            id=-1,
            name=approved.name,
            identity=approved.identity,
            info=approved.info,
            account=PENDING,
            control_block=PENDING,
            current_version=version.id,
            versions=(version,),
        )
    management = Management(enabled=True, placement_group=existing.management.placement_group)
    update = {
        "management": management,
        "current_version": version.id,
        "versions": (*existing.versions, version),
    }
    return existing.model_copy(update=update)


async def candidate(alpha: Alpha, approved: ApproveRequest, existing: Replica | None, image: str) -> DesiredStack:
    """The stack that an approve request would lead to now."""
    replica = with_version(approved, existing, image)
    return await render_now(alpha, replica)


async def render_now(alpha: Alpha, replica: Replica) -> DesiredStack:
    """A replica's stack, rendered over the one in force."""
    before = await sentinel.read_stack(alpha.data, stack_name(replica.name))
    rendered = {} if before is None else dict(zip(before[1].keys(), before[1].objects, strict=True))
    serving = {identity for identity, methods in (await serving_contracts(alpha)).items() if methods}
    return render(replica, alpha.cluster, owner=alpha.account, serving=serving, rendered=rendered)


async def serving_contracts(alpha: Alpha) -> dict[str, bool]:
    """Contract identity → whether it has a method."""
    maps = [await alpha.node.load_map(co_id) for co_id in alpha.data.contracts.as_list()]
    return {str(entity.get("identity")): bool(entity.get("methods")) for entity in maps}


def stack_name(replica: str) -> str:
    """Unique name of a replica's desired stack in the group ``stacks``."""
    return f"stack.{replica}"


def preview_key(request: int, stack: DesiredStack) -> str:
    """Key of a candidate in the Sentinel's ``previews``."""
    return f"{_prefix(request)}{stack.revision}"


async def ask(alpha: Alpha, view: SentinelData, request: int, stack: DesiredStack) -> StackPreview | None:
    """The preview of a candidate; asks for it and gives None as long as there is none."""
    key = preview_key(request, stack)
    found = sentinel.parse_preview(view.results.get(key))
    if found is not None and found.revision in {stack.revision, UNREAD}:
        return found
    target = await sentinel.write_stack(alpha.data, f"candidate.{key}", stack)
    sentinel.name_in(view.previews, key, target)
    await alpha.node.flush()
    return None


async def withdraw(alpha: Alpha, view: SentinelData, request: int, keep: str | None = None) -> None:
    """Take a request's candidates back, but for the one with the key ``keep``."""
    stale = [key for key in list(view.previews) if key.startswith(_prefix(request)) and key != keep]
    for key in stale:
        view.previews.delete(key)
    if stale:
        await alpha.node.flush()


def empty_preview(stack: DesiredStack) -> StackPreview:
    """The preview of a stack without objects, such as the seed's: nothing changes."""
    return StackPreview(stack.name, stack.revision)


def _prefix(request: int) -> str:
    return f"load-request.{request}."


async def existing_of(alpha: Alpha, approved_identity: str, *, exclusive: bool, wanted: int | None) -> Replica | None:
    """The replica that a load of this identity updates (model.md §5, 1); None for a new instance."""
    instances = await records.replicas_of(alpha.data, approved_identity)
    if instances and (exclusive or instances[0].value.info.exclusive):
        return instances[0].value
    if wanted is None:
        return None
    found = await records.find_replica(alpha.data, wanted)
    return None if found is None else found.value
