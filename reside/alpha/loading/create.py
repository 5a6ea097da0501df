"""Step 1 of a load: create Alpha's load request from the spec that a client has written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reside.alpha import lookups, open_requests, records
from reside.alpha.lookups import Reservation
from reside.common.traceparent import TRACEPARENT
from reside.common.tracing import current
from reside.jazz import AccountId, InvalidContent, InvalidState, ValueDeleted, ValueNotFound, WrongKind
from reside.model import lookup
from reside.model.entities import LoadRequestSpec
from reside.model.errors import InvalidInput

if TYPE_CHECKING:
    from reside.alpha.data import AlphaData
    from reside.alpha.records import RequestRecord
    from reside.alpha.state import Alpha
    from reside.jazz import Group, Node


async def create_request(alpha: Alpha, spec_id: str, client: str) -> RequestRecord:
    """Create the load request of a spec, or return the one that an earlier call created.

    Args:
        alpha: the running Alpha.
        spec_id: CoId of the load request value, a map with the members of `LoadRequestSpec`.
        client: the calling account.

    Raises:
        RequestGone: its load request is finished and not kept any more.
        InvalidInput: the value can't be read, is malformed, or was not written by `client`.
    """
    spec = await read_spec(alpha.node, spec_id, client)
    async with alpha.transaction() as tx:
        await tx.load(alpha.data.root.id)
        target = await tx.run_exclusively(lambda: _create(alpha.data, spec_id, spec, client))
    return await records.read_request(alpha.data, target)


async def read_spec(node: Node, spec_id: str, client: str) -> LoadRequestSpec:
    """Read a spec. Only members that `client` wrote in the first transaction of the map count.

    Raises:
        InvalidInput: see `create_request`.
    """
    try:
        value = await node.load_map(spec_id)
    except (ValueDeleted, ValueNotFound, WrongKind, InvalidContent, InvalidState) as error:
        raise InvalidInput(f"load request value {spec_id} can't be read: {error}") from None
    first = {key: value.history(key)[0] for key in value}
    if not first:
        raise InvalidInput(
            f"load request value {spec_id} can't be read: make the account {node.account_id} a reader of it"
        )
    begin = min(first.values(), key=lambda edit: edit.at)
    if begin.by != client:
        raise InvalidInput(f"load request value {spec_id} was written by {begin.by}, not by {client}: write your own")
    written = {
        key: edit.value
        for key, edit in first.items()
        if (edit.session, edit.at) == (begin.session, begin.at) and not edit.deleted
    }
    return records.parse(LoadRequestSpec, written, f"in {spec_id}")


async def find_request(data: AlphaData, spec_id: str, client: str) -> RequestRecord | None:
    """Return the load request of a spec; None if there is none.

    Its map has a name that follows from the spec. That of an earlier release has a look-up.

    Raises:
        RequestGone: it is finished and not kept any more.
    """
    earlier = await lookups.find(data, lookup.load_request_by_spec(spec_id))
    group = await lookups.find(data, lookup.request_group_of_account(client))
    name = lookup.load_request_of_spec(spec_id)
    if earlier is None and group is not None:
        earlier = data.node.unique_map_id(group, name)
        try:
            if await data.node.find_unique_map(group, name) is None:
                return None
        except ValueDeleted:
            pass
    return None if earlier is None else await records.read_request(data, earlier)


async def _create(data: AlphaData, spec_id: str, spec: LoadRequestSpec, client: str) -> str:
    """Create the request's map unless an earlier call created it, and return its id.

    Once the request is in the index of open ones, the leader does the rest. Before, nobody sees it.
    """
    record = await find_request(data, spec_id, client) or await _make(data, spec_id, spec, client)
    if record.value.is_open:
        await open_requests.add(data.node, data.root, record.value.id, record.map.id)
        lookups.confirm_id(data, _reservation(record.map.id), record.value.id)
    return record.map.id


def _reservation(request: str) -> Reservation:
    """Return the reservation of a request's id: the look-up points to the request's map, which is created after it."""
    return Reservation(request, "nextLoadRequest", member=lookup.TARGET)


async def _make(data: AlphaData, spec_id: str, spec: LoadRequestSpec, client: str) -> RequestRecord:
    """Create the request's map in the group of the client's requests."""
    group = await _group_of(data, client)
    name = lookup.load_request_of_spec(spec_id)
    reservation = _reservation(data.node.unique_map_id(group.id, name))
    number = await lookups.reserve_id(data, lookup.load_request_by_id, reservation)
    members = {
        "id": number,
        "status": "validating",
        "image": spec.image,
        "owner": spec.owner_id or client,
        "client": client,
        "wish": spec_id,
        "requestedName": spec.name,
        "existingReplica": spec.replica_id,
        "health": spec.health.document(),
        "canaryPercent": spec.canary_percent,
        TRACEPARENT: current(),
    }
    made = await data.node.unique_map(group, name, {key: value for key, value in members.items() if value is not None})
    return await records.read_request(data, made.id)


async def _group_of(data: AlphaData, client: str) -> Group:
    """Return the group of a client's requests; its readers are the client and all readers of load requests.

    A group for each request would have the same members, and take more space than anything else of a load.
    """
    name = lookup.request_group_of_account(client)
    known = await lookups.find(data, name)
    if known is not None:
        return await data.node.load_group(known)
    group = data.node.create_group(f"load requests of {client}")
    await group.extend(data.requests_group, "reader")
    if client != data.node.account_id:
        await group.add_member(AccountId(client), "reader")
    await lookups.set_target(data, name, group.id)
    return group
