"""Delete a replica, first half: what a deletion would remove, and the order to delete.

A deletion is previewed like a load: the caller names the revision that it has seen, and everything is checked again
under Alpha's lock. A replica that others require is only deleted if the caller insists. The leader carries the deletion
out (`reside.alpha.managing.deleting`).
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from reside.alpha import lookups, records
from reside.alpha.granting import direct
from reside.alpha.granting.due import due_grants, holding, with_direct_grants
from reside.alpha.loading import turns
from reside.alpha.managing.configure import find
from reside.model import lookup
from reside.model.alpha_contract import DEPENDANTS_LISTED
from reside.model.entities import Decision
from reside.model.errors import Conflict
from reside.model.identities import system_id
from reside.model.stacks import canonical

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reside.alpha.state import Alpha
    from reside.model.entities import Replica


@dataclass(frozen=True)
class Deletion:
    """What a deletion removes.

    Attributes:
        replica: id of the replica.
        name: its name.
        objects: its Kubernetes objects, `Kind/name`.
        holds: the permissions that it has: `[id of the granting replica, contract, permission, instance id]`.
        dependants: the replicas that require it: `[id, name, keys of the requirements]`.
    """

    replica: int
    name: str
    objects: list[str]
    holds: list[list[Any]]
    dependants: list[list[Any]]

    @property
    def revision(self) -> str:
        """SHA-256 (hex) of its content."""
        return hashlib.sha256(canonical(asdict(self)).encode()).hexdigest()

    def document(self) -> dict[str, Any]:
        """Return the JSON form, with the revision."""
        return asdict(self) | {"revision": self.revision}


async def preview(alpha: Alpha, number: int) -> Deletion:
    """Return what a deletion of a replica removes.

    Raises:
        InvalidInput: the replica does not exist.
        Conflict: it is a part of the platform, or it is being deleted.
    """
    replica = (await find(alpha, number)).value
    if system_id(replica.identity) is not None:
        raise Conflict(f"replica {replica.name} is a part of ReSide and can't be deleted")
    stack = await alpha.sentinel.read_desired(replica.name)
    granted = (await direct.read_all(alpha.data, replica.account)).values()
    due = with_direct_grants(due_grants(replica), replica.account, granted)
    others = await _requiring(alpha, number)
    return Deletion(
        replica=replica.id,
        name=replica.name,
        objects=[] if stack is None else sorted(stack.keys()),
        holds=sorted([n, ref.contract, ref.name, ref.instance_id or ""] for n, grants in due.items() for ref in grants),
        dependants=dependants(replica, others),
    )


async def _requiring(alpha: Alpha, number: int) -> list[Replica]:
    """Return the replicas that may require a replica: all, as long as an upgrade has not listed those that do."""
    if alpha.data.root.get(DEPENDANTS_LISTED) is not True:
        return [record.value for record in await records.all_replicas(alpha.data)]
    listed = await lookups.find_all(alpha.data, lookup.dependants_of_replica(number))
    return [(await records.read_active(alpha.data, co_id)).value for co_id in listed]


def dependants(replica: Replica, others: Iterable[Replica]) -> list[list[Any]]:
    """Return the replicas that require a replica, as `[id, name, keys of the requirements]`, sorted by id. Pure."""
    found = []
    for other in others:
        keys = {
            key
            for version in holding(other)
            for key, requirement in version.requirements.items()
            if replica.id in {choice.id for choice in requirement.replicas}
        }
        if keys and other.id != replica.id:
            found.append([other.id, other.name, sorted(keys)])
    return sorted(found)


async def delete(alpha: Alpha, number: int, revision: str, by: str, *, force: bool) -> Replica:
    """Order the deletion of a replica; the leader carries it out.

    Args:
        alpha: the running Alpha.
        number: id of the replica.
        revision: revision of the preview that the caller has seen.
        by: account of the caller.
        force: whether to delete it although other replicas require it.

    Raises:
        InvalidInput: the replica does not exist.
        Conflict: the preview is outdated, other replicas require it, or a load of it is being carried out.
    """
    async with alpha.transaction() as tx:
        record = await find(alpha, number)
        await tx.load(record.map.id)
        seen = await preview(alpha, number)
        first = await turns.holder_of(alpha.data, lookup.load_turn_of_replica(number))
        if first is not None:
            raise Conflict(f"load request {first} of {seen.name} was approved and is carried out first: try again")
        if seen.revision != revision:
            raise Conflict(f"what a deletion of {seen.name} removes has changed: look at it again")
        if seen.dependants and not force:
            users = ", ".join(f"{name} ({', '.join(keys)})" for _, name, keys in seen.dependants)
            raise Conflict(f"replica {seen.name} is required by {users}: delete these first, or force the deletion")
        order = Decision(by=by, at=alpha.node.now_ms())
        tx.stage(lambda: record.map.set("deletion", order.document()))
    return record.value
