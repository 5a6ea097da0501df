"""The entities of Alpha's data as plain values: what stands in Jazz, read into frozen pydantic models.

Jazz holds them as CoMaps (docs/model.md, section 3); members are named in camelCase there, as JavaScript
clients expect. Validation happens here, at the edge: code behind it never sees a malformed entity.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from reside.model.manifest import DisplayInfo, ReplicaInfo
from reside.model.status import VersionStatus

LoadRequestStatus = Literal["validating", "invalid", "requires-approval", "rejected", "approved"]
PermissionStatus = Literal["pending", "approved", "rejected"]


class Entity(BaseModel):
    """A value with camelCase members on the wire."""

    model_config = ConfigDict(frozen=True, alias_generator=to_camel, populate_by_name=True, extra="ignore")

    def document(self) -> dict[str, Any]:
        """JSON form as stored in Jazz; members that are None are left out."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


class GrantedPermission(Entity):
    """A permission asked for, by whom and with what result."""

    request_type: Literal["static", "dynamic", "manual"] = "static"
    status: PermissionStatus = "approved"
    permission: str
    instance_id: str | None = None
    params: dict[str, Any] = Field(default_factory=dict)


class ReplicaChoice(Entity):
    """A replica that can serve a requirement."""

    id: int
    name: str
    account: str


class Requirement(Entity):
    """A required contract, resolved: the replicas chosen, the other ones to choose from, the permissions asked."""

    contract: str
    display_info: DisplayInfo = Field(default_factory=dict)
    replicas: tuple[ReplicaChoice, ...] = ()
    alternatives: tuple[ReplicaChoice, ...] = ()
    permissions: tuple[GrantedPermission, ...] = ()
    optional: bool = False
    multiple: bool = False


class ApproveRequest(Entity):
    """What an approver sees and approves."""

    info: ReplicaInfo
    name: str
    identity: str
    digest: str
    display_info: DisplayInfo = Field(default_factory=dict)
    implementations: dict[str, str] = Field(default_factory=dict)
    requirements: dict[str, Requirement] = Field(default_factory=dict)


class LoadWish(Entity):
    """The immutable request value that a client writes: load this image."""

    image: str
    name: str | None = None
    replica_id: int | None = None
    owner_id: str | None = None


class LoadRequest(Entity):
    """A load request as Alpha keeps it.

    ``digest`` is fixed when the image is first resolved; ``target_replica`` and ``target_version`` when the approved
    request begins to be carried out; ``version`` when that is done.
    """

    id: int
    status: LoadRequestStatus
    image: str
    owner: str
    requested_name: str | None = None
    existing_replica: int | None = None
    approve_request: ApproveRequest | None = None
    preview: dict[str, Any] | None = None
    error_message: str | None = None
    rejection_reason: str | None = None
    digest: str | None = None
    target_replica: int | None = None
    target_version: int | None = None
    version: int | None = None


class ReplicaVersion(Entity):
    """One version of a replica, from 1."""

    id: int
    status: VersionStatus = "unknown"
    image: str
    digest: str
    display_info: DisplayInfo = Field(default_factory=dict)
    implementations: dict[str, str] = Field(default_factory=dict)
    requirements: dict[str, Requirement] = Field(default_factory=dict)


class Management(Entity):
    """What an administrator decides about a replica."""

    enabled: bool = True
    placement_group: str | None = None


class Replica(Entity):
    """A replica instance with its versions; ``current_version`` is the id of the current one."""

    id: int
    name: str
    identity: str
    info: ReplicaInfo
    account: str
    control_block: str
    agent_secret: str | None = None
    management: Management = Field(default_factory=Management)
    current_version: int | None = None
    versions: tuple[ReplicaVersion, ...] = ()

    def version(self, number: int) -> ReplicaVersion:
        """The version with this id; a KeyError if there is none."""
        for version in self.versions:
            if version.id == number:
                return version
        raise KeyError(number)
