"""Step 1 of a load: create Alpha's load request from the spec that a client has written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reside.alpha import lookups, open_requests, records
from reside.alpha.lookups import Reservation
from reside.common.traceparent import TRACEPARENT
from reside.common.tracing import current
from reside.jazz import AccountId, InvalidContent, InvalidState, ValueNotFound, WrongKind
from reside.model import lookup
from reside.model.entities import LoadRequestSpec
from reside.model.errors import InvalidInput

if TYPE_CHECKING:
    from reside.alpha.data import AlphaData
    from reside.alpha.records import RequestRecord
    from reside.alpha.state import Alpha
    from reside.jazz import CoMap, Group, Node


async def create_request(alpha: Alpha, spec_id: str, client: str) -> RequestRecord:
    """Create the load request of a spec, or return the one that an earlier call created.

    Args:
        alpha: the running Alpha.
        spec_id: CoId of the load request value, a map with the members of `LoadRequestSpec`.
        client: the calling account.

    Raises:
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
    except (ValueNotFound, WrongKind, InvalidContent, InvalidState) as error:
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


async def complete(alpha: Alpha, record: RequestRecord) -> None:
    """List a request whose creator died after it had added the request to the index of open ones."""
    spec_id = str(record.map["wish"])
    if await lookups.find(alpha.data, lookup.load_request_by_spec(spec_id)) is None:
        async with alpha.transaction() as tx:
            await tx.run_exclusively(lambda: _list(alpha.data, record.value.id, spec_id, record.map.id))


async def _create(data: AlphaData, spec_id: str, spec: LoadRequestSpec, client: str) -> str:
    """Create the request's map unless an earlier call created it, and return its id.

    Once the request is in the index of open ones, the leader does the rest (`complete`). Before, nobody sees it.
    """
    target = await lookups.find(data, lookup.load_request_by_spec(spec_id))
    if target is None:
        number = await lookups.reserve_id(data, lookup.load_request_by_id, _reservation(spec_id))
        target = await lookups.find(data, lookup.load_request_by_id(number))
        if target is None:
            target = (await _make(data, number, spec_id, spec, client)).id
            await lookups.set_target(data, lookup.load_request_by_id(number), target)
        await open_requests.add(data.node, data.root, number, target)
        await _list(data, number, spec_id, target)
    return target


def _reservation(spec_id: str) -> Reservation:
    return Reservation(spec_id, "nextLoadRequest")


async def _list(data: AlphaData, number: int, spec_id: str, target: str) -> None:
    """List a request, and let its spec point to it, which is written last. The caller holds Alpha's lock."""
    lookups.add_once(data.requests, target)
    lookups.confirm_id(data, _reservation(spec_id), number)
    await lookups.set_target(data, lookup.load_request_by_spec(spec_id), target)


async def _make(data: AlphaData, number: int, spec_id: str, spec: LoadRequestSpec, client: str) -> CoMap:
    """Create the request's map in the group of the client's requests."""
    group = await _group_of(data, client)
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
    return group.create_map({key: value for key, value in members.items() if value is not None})


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
