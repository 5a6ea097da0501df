"""Other replicas: the control block names them, their public profiles describe them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, overload

from reside.model.endpoints import rpc_path
from reside.model.errors import InvalidInput, NotReady
from reside.model.identities import resolved
from reside.replica.client import RETRY_WITHIN_S, call_method
from reside.replica.granted import find_granted, wait_until_granted
from reside.replica.profile import load_profile
from reside.replica.typed_methods import Model, dump, parse_response

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import httpx2
    from pydantic import BaseModel

    from reside.jazz import AccountId, CoMap, Credentials, Json, Node
    from reside.replica.client import Process
    from reside.replica.profile import Profile


@dataclass(frozen=True)
class Caller:
    """What calls of peers need: the node, the credentials, the HTTP client, the kind of endpoint."""

    node: Node
    credentials: Credentials = field(repr=False)
    http: httpx2.AsyncClient
    access_context: Literal["internal", "external"]
    """Which endpoint of a peer to call (`ReplicaSettings.access_context`)."""
    processes: dict[AccountId, Process] = field(default_factory=dict)
    """See `call_method`."""


@dataclass(frozen=True)
class Peer:
    """One replica that implements one contract."""

    caller: Caller = field(repr=False)
    account: AccountId
    name: str
    contract: str
    profile: Profile = field(repr=False)

    @overload
    async def call(
        self, method: str, body: dict[str, Any] | BaseModel, *, returns: None = None, within_s: float = RETRY_WITHIN_S
    ) -> Json: ...
    @overload
    async def call(
        self, method: str, body: dict[str, Any] | BaseModel, *, returns: type[Model], within_s: float = RETRY_WITHIN_S
    ) -> Model: ...
    async def call(
        self,
        method: str,
        body: dict[str, Any] | BaseModel,
        *,
        returns: type[Model] | None = None,
        within_s: float = RETRY_WITHIN_S,
    ) -> Json | Model:
        """Call a method of the contract with this replica's account. The token is valid for this peer and body only.

        Args:
            method: name of the method.
            body: the JSON object to send, or a pydantic model of it.
            returns: the pydantic model of the response; None: return it as JSON.
            within_s: seconds for which the call is retried while the peer can't be reached or is starting.

        Raises:
            AnswerLost: no response arrived; the peer may have handled the call.
            NotReady: the peer can't be reached or is not ready.
            NotAllowed: the peer has not granted what the method needs.
            ResideError: any other error that the peer returned, or its response does not match `returns`.
        """
        answer = await call_method(
            self.caller.http,
            self.caller.credentials,
            endpoint=self.profile.endpoint(self.caller.access_context),
            receiver=self.account,
            path=rpc_path(self.name, self.contract, method),
            body=dump(body),
            within_s=within_s,
            processes=self.caller.processes,
        )
        return answer if returns is None else parse_response(returns, answer, f"{self.name}.{method}")

    async def granted(self, permission: str, instance_id: str | None = None) -> dict[str, Any] | None:
        """Return the params with which this peer has granted a permission to this replica; None: it has not.

        Raises:
            NotReady: the sync server does not respond.
        """
        return await find_granted(self, permission, instance_id)

    async def until_granted(
        self, permission: str, instance_id: str | None = None, *, within_s: float | None = None
    ) -> dict[str, Any]:
        """Wait until this peer has granted a permission to this replica, and return the params.

        Args:
            permission: name of the permission in the peer's contract.
            instance_id: id of the instance, for a permission that has instances.
            within_s: seconds to wait; None: without limit, for a oneshot replica that people let wait.

        Raises:
            NotReady: it was not granted in time.
        """
        return await wait_until_granted(self, permission, instance_id, within_s)

    async def data(self) -> CoMap:
        """Load the contract's data map of this peer.

        Raises:
            NotReady: the peer does not publish it.
        """
        value = self.profile.contracts.get(self.contract)
        if value is None:
            raise NotReady(f"replica {self.name} publishes no data of {self.contract}")
        return await self.caller.node.load_map(value)


async def find_peers(
    caller: Caller, requirements: Mapping[str, Sequence[AccountId]], contract_or_key: str
) -> list[Peer]:
    """See `Context.peers`.

    Args:
        caller: what calls of the peers need.
        requirements: key of a requirement → the accounts that the control block names for it.
        contract_or_key: as for `Context.peers`.
    """
    if "/" not in contract_or_key:
        return [await peer_of(caller, account) for account in requirements.get(contract_or_key, [])]
    peers, missing = [], None
    for account in dict.fromkeys(account for named in requirements.values() for account in named):
        try:
            profile = await load_profile(caller.node, account)
        except NotReady as error:
            missing = error
            continue
        if contract_or_key in profile.contracts:
            peers.append(_peer(caller, profile, contract_or_key))
    if not peers and missing is not None:
        raise missing  # a peer whose profile can't be loaded yet may implement it
    return peers


async def peer_of(caller: Caller, account: AccountId, contract: str | None = None) -> Peer:
    """Return the replica with an account as a peer; without `contract`, of the only one that it implements.

    Raises:
        NotReady: it has not published its profile yet.
        InvalidInput: it implements several contracts, and none is named.
    """
    profile = await load_profile(caller.node, account)
    return _peer(caller, profile, resolved(contract) if contract else _only_contract(profile))


def _peer(caller: Caller, profile: Profile, contract: str) -> Peer:
    return Peer(caller, profile.account, profile.name, contract, profile)


def _only_contract(profile: Profile) -> str:
    if len(profile.contracts) != 1:
        raise InvalidInput(
            f"replica {profile.name} implements {len(profile.contracts)} contracts: "
            "pass the identity of a contract instead of the requirement's key"
        )
    return next(iter(profile.contracts))
