"""Which pictures of a cluster are possible, and which one a cluster comes to without a human. Pure.

`faults` holds at every moment, also while work is unfinished. `unfinished` is empty once a leader has done everything.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from support.cluster_picture import blocks_of

from reside.alpha.active_versions import providers
from reside.alpha.granting.due import due_grants, due_requirements, holding, with_direct_grants
from reside.alpha.stacks.rollout import UP
from reside.model.constants import ALPHA_ID
from reside.model.sentinel_data import request_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

    from support.cluster_picture import History, Picture, SeenReplica, SeenRequest

    from reside.model.entities import LoadRequest, Replica, ReplicaVersion
    from reside.model.permissions import Grant, PermissionRef


def faults(picture: Picture, history: History) -> list[str]:
    """Return what is impossible in a picture, whatever is unfinished; it is added to the history."""
    found = [
        *_twice("request id", (seen.value.id for seen in picture.requests)),
        *_twice("request", (seen.map for seen in picture.requests)),
        *_twice("replica id", (seen.value.id for seen in picture.replicas)),
        *_twice("replica", (seen.map for seen in picture.replicas)),
        *_twice("name", (seen.value.name for seen in picture.replicas)),
        *_twice("account", (seen.value.account for seen in picture.replicas)),
        *_twice("control block", picture.blocks),
        *_twice("contract id", (number for number, _ in picture.contracts.values())),
        *_twice("contract", (identity for _, identity in picture.contracts.values())),
        *_held_names(picture),
        *_versions(picture, history),
        *(f"the request {co_id} is in no index, and not deleted" for co_id in picture.lost),
    ]
    for seen in picture.requests:
        found += _request(seen, history)
    for replica in picture.replicas:
        found += _replica(replica, history)
    history.finished |= {seen.map for seen in picture.requests if not seen.value.is_open}
    return found


def unfinished(picture: Picture) -> list[str]:
    """Return what a leader still has to do about a picture without faults."""
    found = [*picture.gone, *_index(picture), *_permissions(picture), *_listings(picture)]
    for seen in picture.requests:
        found += _unfinished_request(seen, picture)
    for replica in picture.replicas:
        found += _unfinished_replica(replica)
    declared = {seen.value.name for seen in picture.replicas}
    found += [f"stack {name} of no replica is declared" for name in picture.declared if name not in declared]
    return found


def _twice(what: str, values: Iterable[Hashable]) -> Iterator[str]:
    return (f"{what} {value} is there {count} times" for value, count in Counter(values).items() if count > 1)


def _held_names(picture: Picture) -> Iterator[str]:
    """Yield names that two open requests for new replicas hold, or that one holds though a replica has it."""
    held: dict[str, int] = {}
    owners = {seen.value.name: seen.value for seen in picture.replicas}
    for seen in picture.requests:
        request = seen.value
        approved = request.approve_request
        if not request.is_open or approved is None or request.existing_replica is not None:
            continue
        if approved.name in held:
            yield f"requests {held[approved.name]} and {request.id} hold the name {approved.name}"
        held[approved.name] = request.id
        owner = owners.get(approved.name)
        if owner is not None and owner.id != request.target_replica:
            yield f"request {request.id} holds the name {approved.name} of replica {owner.id}"


def _versions(picture: Picture, history: History) -> Iterator[str]:
    """Yield versions and requests that do not belong to each other."""
    requests = {seen.value.id: seen.value for seen in picture.requests}
    replicas = {seen.value.id: seen.value for seen in picture.replicas}
    yield from _twice("version of request", (v.request for r in replicas.values() for v in r.versions))
    for replica in replicas.values():
        for version in replica.versions:
            number = version.request or 0
            if number in requests or history.request_maps.get(number) not in history.finished:
                yield from _version(replica, version, requests.get(number))
    for request in requests.values():
        target = replicas.get(request.target_replica or 0)
        made = set() if target is None else {None, *(version.id for version in target.versions)}
        if target is not None and request.version not in made:
            yield f"request {request.id} names version {request.version}, which {target.name} does not have"


def _version(replica: Replica, version: ReplicaVersion, request: LoadRequest | None) -> Iterator[str]:
    what = f"version {version.id} of {replica.name}"
    if request is None:
        yield f"{what} has no request"
        return
    approved = request.approve_request
    if request.status != "approved" or approved is None:
        yield f"{what} is of request {request.id}, which is {request.status}"
    elif {request.digest, approved.digest} != {version.digest}:
        yield f"{what} has the digest {version.digest}, its request {request.id} {request.digest}"
    if (request.target_replica, request.version) not in {(replica.id, version.id), (replica.id, None)}:
        yield f"request {request.id} names version {request.version} of {request.target_replica}, not {what}"


def _request(seen: SeenRequest, history: History) -> Iterator[str]:
    request, what = seen.value, f"request {seen.value.id}"
    if history.request_maps.setdefault(request.id, seen.map) != seen.map:
        yield f"{what} was another one before"
    if seen.by_id != seen.map:
        yield f"the look-up of {what} points to {seen.by_id}"
    pushed = history.digests.get(request.image)
    if request.digest is not None and pushed not in {None, request.digest}:
        yield f"{what} has the digest {request.digest}, its image {pushed}"
    if request.version is not None and request.status != "approved":
        yield f"{what} has version {request.version}, and is {request.status}"
    if request.target_replica is not None and request.status not in {"approved", "invalid"}:
        yield f"{what} has the replica {request.target_replica}, and is {request.status}"
    if request.version is not None and request.target_replica is None:
        yield f"{what} has a version of no replica"
    expected: dict[str, Any] = {
        "invalid": request.error_message,
        "rejected": request.rejection_reason,
        "requires-approval": request.revision and request.preview and request.approve_request,
        "approved": request.revision and request.approve_request,
    }
    if request.status in expected and not expected[request.status]:
        yield f"{what} is {request.status}, and does not say why, or of what"
    granted = request.approve_request.requirements if request.approve_request else {}
    statuses = {permission.status for requirement in granted.values() for permission in requirement.permissions}
    if request.status == "approved" and "pending" in statuses:
        yield f"{what} is approved, and has a permission that is not"
    if request.status == "requires-approval" and "approved" in statuses:
        yield f"{what} is not approved, and has a permission that is"


def _replica(seen: SeenReplica, history: History) -> Iterator[str]:
    replica, what = seen.value, f"replica {seen.value.id}"
    before = history.replicas.setdefault(replica.id, replica)
    fixed = ("name", "identity", "info", "account", "control_block")
    if any(getattr(before, member) != getattr(replica, member) for member in fixed):
        yield f"{what} was another one before"
    if history.replica_maps.setdefault(replica.id, seen.map) != seen.map:
        yield f"{what} had another map before"
    if [version.id for version in replica.versions] != list(range(1, len(replica.versions) + 1)):
        yield f"{what} has the versions {[version.id for version in replica.versions]}"
    if replica.current_version not in {None, *(version.id for version in replica.versions)}:
        yield f"{what} has no version {replica.current_version}"
    if not replica.info.scalable and sum(version.status in UP for version in replica.versions) > 1:
        yield f"{what} runs twice, and is not scalable"


def _index(picture: Picture) -> Iterator[str]:
    expected = {str(seen.value.id): seen.map for seen in picture.requests if seen.value.is_open}
    if picture.open != expected:
        yield f"the index lists the requests {sorted(picture.open)}, and {sorted(expected)} are open"
    if {seen.value.account: seen.value.id for seen in picture.replicas} != picture.accounts:
        yield f"the accounts are {picture.accounts}"
    kept = {block for seen in picture.replicas for block in [seen.block.id]}
    missing = kept - set(picture.blocks)
    if missing:
        yield f"the control blocks {missing} are not listed"


def _listings(picture: Picture) -> Iterator[str]:
    """Yield look-ups that list other replicas than those that serve a contract, or not all that require a replica."""
    for identity, listed in picture.providers.items():
        serving = {seen.map for seen in picture.replicas if identity in _served(seen)}
        if set(listed) != serving or len(listed) != len(serving):
            yield f"the look-up of {identity} lists {listed}, and {serving} serve it"
    for seen in picture.replicas:
        requiring = {other.map for other in picture.replicas if seen.value.id in providers(holding(other.value))}
        if not requiring <= set(seen.dependants):
            yield f"the look-up of the dependants of {seen.value.name} lists {seen.dependants}, not {requiring}"


def _served(seen: SeenReplica) -> set[str]:
    replica = seen.value
    if replica.current_version is None or not replica.management.enabled or replica.deletion is not None:
        return set()
    return set(replica.version(replica.current_version).implementations.values())


def _unfinished_request(seen: SeenRequest, picture: Picture) -> Iterator[str]:
    request, what = seen.value, f"request {seen.value.id}"
    if request.status == "validating" or (request.status == "approved" and request.version is None):
        yield f"{what} is {request.status}"
    if request.is_open:
        return
    if seen.has_turn:
        yield f"{what} is finished, and has a turn"
    name = None if request.approve_request is None else request.approve_request.name
    others = {other.value.name for other in picture.replicas}
    others |= {
        other.value.approve_request.name
        for other in picture.requests
        if other.value.is_open and other.value.approve_request
    }
    if seen.holds_name and name not in others:
        yield f"{what} is finished, and holds the name {name}"
    if any(request_of(key) == request.id for key in picture.previewed):
        yield f"{what} is finished, and is previewed"


def _unfinished_replica(seen: SeenReplica) -> Iterator[str]:
    replica, what = seen.value, seen.value.name
    if replica.deletion is not None:
        yield f"{what} is being deleted"
    if replica.current_version is None:
        yield f"{what} has no current version"
    yield from _pointers(seen)
    if seen.desired is None or seen.desired.revision != seen.rendered.revision:
        yield f"{what} is declared as {seen.desired}, and rendered as {seen.rendered}"
    for version in replica.versions:
        runs = version.id == replica.current_version and replica.management.enabled
        if version.status != ("running" if runs else "stopped"):
            yield f"version {version.id} of {what} is {version.status}"
    if seen.has_secret:
        yield f"the agent secret of {what} is in Jazz"


def _pointers(seen: SeenReplica) -> Iterator[str]:
    """Yield look-ups that do not point to a replica as they should."""
    what = seen.value.name
    for name, target in (("id", seen.by_id), ("name", seen.by_name)):
        if target != seen.map:
            yield f"the look-up of {what} by {name} points to {target}"
    if seen.block_by_id != seen.block.id or seen.value.control_block != seen.block.id:
        yield f"the look-up of the control block of {what} points to {seen.block_by_id}"
    if list(seen.by_identity).count(seen.map) != 1:
        yield f"the look-up of the identity of {what} lists {seen.by_identity}"


def _permissions(picture: Picture) -> Iterator[str]:
    """Yield permissions that are not as due: what Alpha expects of all blocks, and what Alpha itself has granted."""
    replicas = {seen.value.account: seen.value for seen in picture.replicas}
    due: dict[int, dict[PermissionRef, Grant]] = {}
    for account in replicas.keys() | picture.direct.keys():
        of_versions = due_grants(replicas[account]) if account in replicas else {}
        both = with_direct_grants(of_versions, account, picture.direct.get(account, ()))
        for number, grants in both.items():
            due.setdefault(number, {}).update(grants)
    for number, block in blocks_of(picture).items():
        granted = {entry.ref: entry.expected for entry in block.entries if entry.expected.granted}
        if granted != due.get(number, {}):
            yield f"block {number} expects {granted}, and due is {due.get(number, {})}"
        unsettled = [entry.ref.key for entry in block.entries if number == ALPHA_ID and not entry.settled]
        if unsettled:
            yield f"Alpha has not carried out {unsettled}"
    for seen in picture.replicas:
        if seen.block.requirements != due_requirements(seen.value):
            yield f"the block of {seen.value.name} names {seen.block.requirements} for its requirements"
