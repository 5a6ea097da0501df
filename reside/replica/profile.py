"""The public profile of a replica: its endpoints and the data maps of its contracts (docs/model.md, section 3).

It is the profile map of the replica's Jazz account. Everyone can read it; only that account writes it. `endpoints` and
`contracts` are JSON, or as in the first implementation the ids of maps with the same members.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from reside.jazz import CoId, InvalidContent, InvalidState, JazzTimeout, ValueNotFound, WrongKind
from reside.model.errors import NotReady
from reside.model.identities import ByContract

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from reside.jazz import AccountId, CoMap, Group, Node


@dataclass(frozen=True)
class Profile:
    """The public profile of a replica.

    Attributes:
        endpoints: addresses by `internal` and `external`.
        contracts: identity of each implemented contract → id of its data map; None for a contract without data.
        group: the profile's group, which owns the replica's public unique maps.
    """

    account: AccountId
    name: str
    replica_id: int | None
    endpoints: Mapping[str, str]
    contracts: ByContract[CoId | None]
    group: Group = field(repr=False, compare=False)

    def endpoint(self, access: Literal["internal", "external"]) -> str:
        """Return the base address for calls.

        Raises:
            NotReady: the replica does not publish this endpoint.
        """
        try:
            return self.endpoints[access]
        except KeyError:
            raise NotReady(f"replica {self.name} publishes no {access} endpoint") from None


async def load_profile(node: Node, account: AccountId) -> Profile:
    """Load the profile of another replica.

    Raises:
        NotReady: the account can't be loaded, or the replica has not started yet.
    """
    try:
        content = await (await node.load_account(account)).load_profile()
        members = {**content.as_dict(), **await _load_members(node, content)}
    except (ValueNotFound, WrongKind, JazzTimeout, InvalidContent, InvalidState) as error:
        raise NotReady(f"the profile of replica account {account} can't be loaded: {error}") from error
    return parse_profile(account, members, content.group)


async def load_contracts(node: Node, content: CoMap) -> Mapping[str, Any]:
    """Return the member `contracts` of a profile map; empty if it has none.

    Raises:
        JazzError: it is the id of a map that can't be loaded.
    """
    found = (await _load_members(node, content, ["contracts"])).get("contracts", content.get("contracts"))
    return found if isinstance(found, dict) else {}


async def _load_members(
    node: Node, content: CoMap, names: Iterable[str] = ("endpoints", "contracts")
) -> dict[str, dict[str, Any]]:
    """Return the members that are ids of maps, as the content of these maps."""
    named = {name: value for name in names if isinstance(value := content.get(name), str)}
    return {name: (await node.load_map(CoId(value))).as_dict() for name, value in named.items()}


def parse_profile(account: AccountId, members: Mapping[str, Any], group: Group) -> Profile:
    """Return the profile that the members of a profile map represent.

    Args:
        account: the replica's account.
        members: the members; those that are maps of their own, as the content of these maps.
        group: the owner of the profile map.

    Raises:
        NotReady: it is not the profile of a replica, or not yet.
    """
    name, endpoints, contracts = members.get("name"), members.get("endpoints"), members.get("contracts")
    if not isinstance(name, str) or not isinstance(endpoints, dict) or not isinstance(contracts, dict):
        raise NotReady(f"account {account} has not published the profile of a replica yet: the replica has not started")
    number = members.get("replicaId")
    return Profile(
        account=account,
        name=name,
        replica_id=number if isinstance(number, int) else None,
        endpoints={key: value for key, value in endpoints.items() if isinstance(value, str)},
        contracts=ByContract(
            {key: CoId(value) if isinstance(value, str) else None for key, value in contracts.items()}
        ),
        group=group,
    )


def publish_profile(
    content: CoMap,
    *,
    name: str,
    replica_id: int,
    endpoints: Mapping[str, str],
    contracts: Mapping[str, CoId | None],
) -> None:
    """Write the members that differ into the replica's own profile map, so that a restart writes nothing."""
    members: dict[str, Any] = {
        "name": name,
        "replicaId": replica_id,
        "endpoints": dict(endpoints),
        "contracts": dict(contracts),
    }
    content.update({key: value for key, value in members.items() if content.get(key) != value})
