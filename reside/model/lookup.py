"""Names of look-ups: unique maps of Alpha's public group that point to entities (docs/model.md, section 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

TARGET: Final = "target"
"""Member of a look-up: id of the entity that it points to."""
VALUE: Final = "value"
"""The same in the first implementation, whose programs read and write it: what points has both members."""
TARGETS: Final = "targets"
"""Member of a look-up of an earlier release that lists entities: their ids. Now each is a member, id → number."""
CLAIMANT: Final = "claimant"
"""Member of a look-up by id: identifies the reservation of the id."""


def pointing_to(target: str) -> dict[str, Any]:
    """Return the members of a look-up that points to a value."""
    return {TARGET: target, VALUE: target}


def target_of(members: Mapping[str, Any]) -> str | None:
    """Return the id of the value that a look-up points to; None if it points to nothing."""
    return next((found for name in (TARGET, VALUE) if isinstance(found := members.get(name), str)), None)


def replica_by_id(number: int) -> str:
    """Return the name of the look-up of the replica with this id."""
    return f"replica.by-id.{number}"


def replica_by_name(name: str) -> str:
    """Return the name of the look-up of the replica with this name."""
    return f"replica.by-name.{name}"


def replicas_by_identity(identity: str) -> str:
    """Return the name of the look-up of the replicas whose images have this identity."""
    return f"replica.by-identity.{identity}"


def replicas_by_contract(number: int) -> str:
    """Return the name of the look-up of the replicas that implement the contract with this id."""
    return f"replica.by-contract.{number}"


def dependants_of_replica(number: int) -> str:
    """Return the name of the look-up of the replicas that require the replica with this id."""
    return f"dependants.of-replica.{number}"


def contract_by_id(number: int) -> str:
    """Return the name of the look-up of the contract with this id."""
    return f"contract.by-id.{number}"


def contract_by_identity(identity: str) -> str:
    """Return the name of the look-up of the contract with this identity."""
    return f"contract.by-identity.{identity}"


def load_request_by_id(number: int) -> str:
    """Return the name of the look-up of the load request with this id."""
    return f"load-request.by-id.{number}"


def load_request_by_spec(spec: str) -> str:
    """Return the name of the look-up of the load request that an earlier release created from a spec."""
    return f"load-request.by-wish.{spec}"


def load_request_of_spec(spec: str) -> str:
    """Return the name of the map of the load request of a spec, in the group of its client; `spec` is the spec's id."""
    return f"load-request.of-value.{spec}"


def load_request_by_name(name: str) -> str:
    """Return the name of the look-up of the load request that was the last to hold the name of a new instance."""
    return f"load-request.by-name.{name}"


def request_group_of_account(account: str) -> str:
    """Return the name of the look-up of the group that owns the load requests of a client."""
    return f"request-group.of-account.{account}"


def load_turn_of_replica(number: int) -> str:
    """Return the name of the look-up of the load request that was approved last for the replica with this id."""
    return f"load-turn.of-replica.{number}"


def load_turn_of_identity(identity: str) -> str:
    """Return the name of the look-up of the load request that was approved last for an exclusive identity."""
    return f"load-turn.of-identity.{identity}"


def rcb_by_id(number: int) -> str:
    """Return the name of the look-up of the control block with this id."""
    return f"rcb.by-id.{number}"


def granted_permissions(account: str) -> str:
    """Return the name of the map that publishes what a replica has granted to `account`."""
    return f"granted-permissions:for-account:{account}"
