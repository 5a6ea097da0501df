"""Other replicas, as the own control block names them and their public profiles describe them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from reside.model.errors import InvalidInput, NotReady
from reside.replica.client import call_method, rpc_path
from reside.replica.profile import load_profile

if TYPE_CHECKING:
    from reside.jazz import AccountId, CoMap
    from reside.replica.context import Context
    from reside.replica.declaration import Json
    from reside.replica.profile import Profile


@dataclass(frozen=True)
class Peer:
    """One replica that serves one contract."""

    context: Context = field(repr=False)
    account: AccountId
    name: str
    contract: str
    profile: Profile = field(repr=False)

    async def call(self, method: str, body: dict[str, Any]) -> Json:
        """Call a method of the contract, as the own account, with a token that only this peer takes for this body.

        Raises:
            NotReady: the peer can't be reached or is not ready.
            NotAllowed: the peer has not granted what the method needs.
            ResideError: any other error that the peer answered.
        """
        return await call_method(
            self.context.http,
            self.context.credentials,
            endpoint=self.profile.endpoint(self.context.settings.access_context),
            receiver=self.account,
            path=rpc_path(self.name, self.contract, method),
            body=body,
        )

    async def data(self) -> CoMap:
        """The contract's data map of this peer.

        Raises:
            NotReady: the peer publishes none.
        """
        value = self.profile.contracts.get(self.contract)
        if value is None:
            raise NotReady(f"replica {self.name} publishes no data of {self.contract}")
        return await self.context.node.load_map(value)


async def find_peers(context: Context, contract_or_key: str) -> list[Peer]:
    """See ``Context.peers``."""
    requirements = context.rcb.requirements()
    if "/" not in contract_or_key:
        profiles = [await load_profile(context.node, account) for account in requirements.get(contract_or_key, [])]
        return [_peer(context, profile, _only_contract(profile)) for profile in profiles]
    peers, missing = [], None
    for account in dict.fromkeys(account for named in requirements.values() for account in named):
        try:
            profile = await load_profile(context.node, account)
        except NotReady as error:
            missing = error
            continue
        if contract_or_key in profile.contracts:
            peers.append(_peer(context, profile, contract_or_key))
    if not peers and missing is not None:
        raise missing  # one of those that can't be asked yet may be it
    return peers


def _peer(context: Context, profile: Profile, contract: str) -> Peer:
    return Peer(context, profile.account, profile.name, contract, profile)


def _only_contract(profile: Profile) -> str:
    if len(profile.contracts) != 1:
        raise InvalidInput(
            f"replica {profile.name} implements {len(profile.contracts)} contracts: ask for peers by contract identity"
        )
    return next(iter(profile.contracts))
