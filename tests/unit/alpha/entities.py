"""Entities of Alpha's data for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reside.model.cluster import ClusterSettings
from reside.model.entities import Management, Replica, ReplicaVersion
from reside.model.manifest import ContractManifest, ReplicaInfo, ReplicaManifest, parse_manifest

if TYPE_CHECKING:
    from reside.model.status import VersionStatus

OWNER = "co_zAlpha"
CLUSTER = ClusterSettings(namespace="reside")
GREETING = "registry.reside.internal/reside/contracts/greeting.v1"
GREETER = "registry.reside.internal/reside/examples/greeter"
CALLER = "registry.reside.internal/reside/examples/caller"


def digest(number: int) -> str:
    """Return a well-formed digest."""
    return f"sha256:{number:064x}"


def replica(
    *statuses: VersionStatus,
    current: int | None = None,
    scalable: bool = True,
    kind: str = "long-running",
    management: Management | None = None,
    **members: Any,
) -> Replica:
    """Return a replica `greeter` whose versions 1, 2, … have these statuses; by default the last is current."""
    info = {"name": "greeter", "class": kind, "exclusive": True, "scalable": scalable}
    versions = tuple(
        ReplicaVersion(
            id=number,
            status=status,
            image=f"{GREETER}:v{number}",
            digest=digest(number),
            implementations={"greeting": GREETING},
        )
        for number, status in enumerate(statuses, 1)
    )
    return Replica(
        **{
            "id": 3,
            "name": "greeter",
            "identity": GREETER,
            "info": ReplicaInfo.model_validate(info),
            "account": "co_zGreeter",
            "control_block": "co_zBlock",
            "agent_secret": "co_zSecret",
            "management": management or Management(),
            "current_version": current if current is not None else (len(statuses) or None),
            "versions": versions,
            **members,
        }
    )


def manifest(identity: str = CALLER, **members: Any) -> ReplicaManifest:
    """Return a replica's manifest; `members` have the names of the label's JSON."""
    info = {"name": "caller", "class": "long-running", "exclusive": False, "scalable": False}
    parsed = parse_manifest({"type": "replica", "identity": identity, "info": info, **members})
    assert isinstance(parsed, ReplicaManifest)
    return parsed


def contract(identity: str = GREETING, **members: Any) -> ContractManifest:
    """Return a contract with the permission `greet` and the method `greet`, unless `members` replace them."""
    document: dict[str, Any] = {
        "type": "contract",
        "identity": identity,
        "permissions": {"greet": {}},
        "methods": {"greet": {}},
    }
    parsed = parse_manifest(document | members)
    assert isinstance(parsed, ContractManifest)
    return parsed
