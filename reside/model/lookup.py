"""Unique names of look-up objects, owned by Alpha's data group (docs/model.md, section 3)."""

from __future__ import annotations

from typing import Final

TARGET: Final = "target"
"""Member of a look-up: id of the entity that it points to."""
TARGETS: Final = "targets"
"""Member of a look-up that lists entities: their ids."""
CLAIMANT: Final = "claimant"
"""Member of a look-up by id: what reserved the id."""


def replica_by_id(number: int) -> str:
    """The replica with this id."""
    return f"replica.by-id.{number}"


def replica_by_name(name: str) -> str:
    """The replica of this name."""
    return f"replica.by-name.{name}"


def replicas_by_identity(identity: str) -> str:
    """The replicas made from images of this identity."""
    return f"replica.by-identity.{identity}"


def replicas_by_contract(number: int) -> str:
    """The replicas that implement the contract with this id."""
    return f"replica.by-contract.{number}"


def contract_by_id(number: int) -> str:
    """The contract with this id."""
    return f"contract.by-id.{number}"


def contract_by_identity(identity: str) -> str:
    """The contract of this identity."""
    return f"contract.by-identity.{identity}"


def load_request_by_id(number: int) -> str:
    """The load request with this id."""
    return f"load-request.by-id.{number}"


def load_request_by_wish(wish: str) -> str:
    """The load request made from this request value (id of its map), so that a repeated create finds it."""
    return f"load-request.by-wish.{wish}"


def rcb_by_id(number: int) -> str:
    """The control block with this id."""
    return f"rcb.by-id.{number}"


def granted_permissions(account: str) -> str:
    """Where a granting replica publishes what it granted to ``account``."""
    return f"granted-permissions:for-account:{account}"
