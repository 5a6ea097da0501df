"""Step 1 of a load: a client's request value becomes Alpha's load request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reside.alpha import lookups, records
from reside.alpha.lookups import Reservation
from reside.jazz import AccountId, InvalidContent, ValueNotFound, WrongKind
from reside.model import lookup
from reside.model.entities import LoadRequestSpec
from reside.model.errors import InvalidInput

if TYPE_CHECKING:
    from reside.alpha.data import AlphaData
    from reside.alpha.records import RequestRecord
    from reside.alpha.state import Alpha
    from reside.jazz import CoMap, Node


async def create_request(alpha: Alpha, wish_id: str, client: str) -> RequestRecord:
    """The load request of a request value; a repeated call gives the same one.

    Args:
        alpha: the running Alpha.
        wish_id: CoId of the request value, a map with the members of `LoadRequestSpec`.
        client: the account that asks.

    Raises:
        InvalidInput: the value can't be read, is malformed, or was not written by `client`.
    """
    wish = await read_wish(alpha.node, wish_id, client)
    async with alpha.transaction() as tx:
        await tx.load(alpha.data.root.id)
        target = await tx.run_exclusively(lambda: _create(alpha.data, wish_id, wish, client))
    return await records.read_request(alpha.data, target)


async def read_wish(node: Node, wish_id: str, client: str) -> LoadRequestSpec:
    """The request value; only what `client` wrote in the value's first transaction counts.

    Raises:
        InvalidInput: see `create_request`.
    """
    try:
        value = await node.load_map(wish_id)
    except (ValueNotFound, WrongKind, InvalidContent) as error:
        raise InvalidInput(f"request value {wish_id} can't be read: {error}") from None
    first = {key: value.history(key)[0] for key in value}
    if not first:
        raise InvalidInput(f"request value {wish_id} can't be read: make the account {node.account_id} a reader of it")
    begin = min(first.values(), key=lambda edit: edit.at)
    if begin.by != client:
        raise InvalidInput(f"request value {wish_id} was written by {begin.by}, not by {client}: make one of your own")
    written = {
        key: edit.value
        for key, edit in first.items()
        if (edit.session, edit.at) == (begin.session, begin.at) and not edit.deleted
    }
    return records.parse(LoadRequestSpec, written, f"in request value {wish_id}")


async def _create(data: AlphaData, wish_id: str, wish: LoadRequestSpec, client: str) -> str:
    """The id of the request's map, made unless an earlier call made it."""
    reservation = Reservation(wish_id, "nextLoadRequest")
    target = await lookups.find(data, lookup.load_request_by_spec(wish_id))
    if target is None:
        number = await lookups.reserve_id(data, lookup.load_request_by_id, reservation)
        target = await lookups.find(data, lookup.load_request_by_id(number))
        if target is None:
            target = (await _make(data, number, wish_id, wish, client)).id
        await lookups.set_target(data, lookup.load_request_by_id(number), target)
        await lookups.set_target(data, lookup.load_request_by_spec(wish_id), target)
        lookups.confirm_id(data, reservation, number)
    lookups.add_once(data.requests, target)
    return target


async def _make(data: AlphaData, number: int, wish_id: str, wish: LoadRequestSpec, client: str) -> CoMap:
    """The request's map, in a group of its own: the client reads it, and whoever reads all requests."""
    group = data.node.create_group(f"load request {number}")
    await group.extend(data.requests_group, "reader")
    if client != data.node.account_id:
        await group.add_member(AccountId(client), "reader")
    members = {
        "id": number,
        "status": "validating",
        "image": wish.image,
        "owner": wish.owner_id or client,
        "client": client,
        "wish": wish_id,
        "requestedName": wish.name,
        "existingReplica": wish.replica_id,
    }
    return group.create_map({key: value for key, value in members.items() if value is not None})
