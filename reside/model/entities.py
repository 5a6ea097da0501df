"""The entities of Alpha's data as frozen pydantic models (docs/model.md, section 3).

Jazz stores them as CoMaps, whose members are in camelCase, as JavaScript clients expect. Entities are validated when
they are read, so other code never gets a malformed one.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic.alias_generators import to_camel

from reside.common import traceparent
from reside.model.manifest import DisplayInfo, ReplicaInfo
from reside.model.status import VersionStatus

LoadRequestStatus = Literal["validating", "invalid", "requires-approval", "rejected", "approved"]
PermissionStatus = Literal["pending", "approved", "rejected"]
DirectGrantStatus = Literal["pending", "approved", "rejected", "revoked"]
CanaryPercent = Annotated[int | None, Field(ge=1, le=99)]
"""Share of the pods that a canary gets; None for a version that is no canary."""
Probes = Literal["none"] | None
"""Whether Kubernetes probes the pods of a version; None: it does."""


class Entity(BaseModel):
    """A value whose members are in camelCase in JSON."""

    model_config = ConfigDict(
        frozen=True,
        alias_generator=to_camel,
        populate_by_name=True,
        extra="ignore",
        defer_build=True,  # at first use: the command needs few of the entities, and building all takes a while
    )

    def document(self) -> dict[str, Any]:
        """Return the JSON form that is stored in Jazz, without the members that are None."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)

    def compact_document(self) -> dict[str, Any]:
        """Return the JSON form without the members that are None or have their default value; a reader adds those."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=True)


class GrantedPermission(Entity):
    """A permission of a requirement: how it was requested, and whether it is approved."""

    request_type: Literal["static", "dynamic", "manual"] = "static"
    status: PermissionStatus = "approved"
    permission: str
    instance_id: str | None = None
    params: dict[str, Any] = Field(default_factory=dict)


class Decision(Entity):
    """Who asked for something or decided it, when (ms since 1970), and why."""

    by: str
    at: int
    reason: str = ""


class DirectGrant(Entity):
    """A permission that an account has apart from any version: granted by a person, or asked for by a running replica.

    `replica` is the id of the replica that grants it. What a person grants without having been asked is `manual`;
    `asked` is set for the others, which are `dynamic`.
    """

    request_type: Literal["manual", "dynamic"] = "manual"
    status: DirectGrantStatus
    replica: int
    contract: str
    permission: str
    instance_id: str | None = None
    params: dict[str, Any] = Field(default_factory=dict)
    asked: Decision | None = None
    decided: Decision | None = None

    @property
    def key(self) -> str:
        """The key in the map of an account's direct grants: `<replica>:<contract>:<permission>[:<instance id>]`."""
        parts = [str(self.replica), self.contract, self.permission]
        return ":".join(parts if self.instance_id is None else [*parts, self.instance_id])


class ReplicaChoice(Entity):
    """A replica that can serve a requirement."""

    id: int
    name: str
    account: str


class Requirement(Entity):
    """A resolved requirement: the contract, the replicas chosen, the alternatives, the permissions.

    `chosen` is whether an approver has chosen the replicas.
    """

    contract: str
    display_info: DisplayInfo = Field(default_factory=dict)
    replicas: tuple[ReplicaChoice, ...] = ()
    alternatives: tuple[ReplicaChoice, ...] = ()
    chosen: bool = False
    permissions: tuple[GrantedPermission, ...] = ()
    optional: bool = False
    multiple: bool = False


class HealthPolicy(Entity):
    """When a new version counts as healthy, and what happens if it does not become healthy in time.

    `deadline_s` is the time in seconds that it has to become healthy, `min_ready_s` how long a pod must be ready before
    it counts, `on_failure` whether a version that missed its deadline stays, or the last healthy one replaces it.
    """

    deadline_s: int = Field(default=600, ge=1, le=86_400)
    min_ready_s: int = Field(default=0, ge=0, le=3600)
    on_failure: Literal["stay", "roll-back"] = "stay"

    @model_validator(mode="after")
    def _has_time(self) -> HealthPolicy:
        if self.min_ready_s >= self.deadline_s:
            raise ValueError("minReadyS must be less than deadlineS")
        return self


class ChangedPermission(Entity):
    """A permission that a load adds or removes; `replica` is the name of the replica that grants it."""

    contract: str
    replica: str
    permission: str
    instance_id: str | None = None
    params: dict[str, Any] = Field(default_factory=dict)


class Difference(Entity):
    """What a load changes of the permissions of an instance, compared with its current version."""

    version: int
    digest: str
    added: tuple[ChangedPermission, ...] = ()
    removed: tuple[ChangedPermission, ...] = ()


class ApproveRequest(Entity):
    """What an approver reviews and approves.

    `probes` is `none` if the pods are not probed, `difference` is missing for a new instance.
    """

    info: ReplicaInfo
    name: str
    identity: str
    digest: str
    display_info: DisplayInfo = Field(default_factory=dict)
    probes: Probes = None
    implementations: dict[str, str] = Field(default_factory=dict)
    requirements: dict[str, Requirement] = Field(default_factory=dict)
    difference: Difference | None = None


class LoadRequestSpec(Entity):
    """The spec of a load request: a map that a client writes once.

    `canary_percent` asks for a canary that gets this share of the pods.
    """

    image: str
    name: str | None = None
    replica_id: int | None = None
    owner_id: str | None = None
    health: HealthPolicy = Field(default_factory=HealthPolicy)
    canary_percent: CanaryPercent = None


class LoadRequest(Entity):
    """A load request, as Alpha stores it.

    `digest` is set when the image is first resolved, `target_replica` when Alpha starts to create the version of an
    approved request, and `version` when the version is complete. `revision` is what an approver names
    (`reside.alpha.loading.revision`); it is set together with `preview`. `decided_by` is the account that approved or
    rejected it. `waits_for` says why a validation takes long. `traceparent` is the context of the call that made the
    request, for traces; it decides nothing.
    """

    id: int
    status: LoadRequestStatus
    image: str
    owner: str
    requested_name: str | None = None
    existing_replica: int | None = None
    health: HealthPolicy = Field(default_factory=HealthPolicy)
    canary_percent: CanaryPercent = None
    approve_request: ApproveRequest | None = None
    preview: dict[str, Any] | None = None
    revision: str | None = None
    error_message: str | None = None
    rejection_reason: str | None = None
    decided_by: str | None = None
    waits_for: str | None = None
    digest: str | None = None
    target_replica: int | None = None
    version: int | None = None
    traceparent: str | None = None

    @field_validator("traceparent", mode="before")
    @classmethod
    def _is_traceparent(cls, value: Any) -> str | None:
        return traceparent.parse(value)

    @property
    def is_open(self) -> bool:
        """Whether the request has not reached its final state."""
        return self.status not in ("invalid", "rejected") and self.version is None


class TemplateChange(Entity):
    """What a newer pod template would change: its digest, and the paths of the members that differ."""

    digest: str
    paths: tuple[str, ...] = ()


class ReplicaVersion(Entity):
    """One version of a replica, from 1.

    `request` is the id of the load request that created it, `reason` why it does not run, `template_change` what the
    pod template that Alpha renders now would change. `reside.alpha.health` writes `starting_since` (ms since 1970) and
    `was_healthy`. `canary_percent` is set if it was loaded as a canary. `rolled_back_to` is the id of the version that
    became current again, or that stayed current when this canary was aborted. `probes` is `none` if its pods are not
    probed.
    """

    id: int
    request: int | None = None
    status: VersionStatus = "unknown"
    reason: str | None = None
    health: HealthPolicy = Field(default_factory=HealthPolicy)
    starting_since: int | None = None
    was_healthy: bool = False
    canary_percent: CanaryPercent = None
    rolled_back_to: int | None = None
    image: str
    digest: str
    display_info: DisplayInfo = Field(default_factory=dict)
    probes: Probes = None
    implementations: dict[str, str] = Field(default_factory=dict)
    requirements: dict[str, Requirement] = Field(default_factory=dict)
    template_change: TemplateChange | None = None


class Management(Entity):
    """What administrators configure for a replica."""

    enabled: bool = True
    placement_group: str | None = None
    pods: int = 1


class Replica(Entity):
    """An instance with its versions.

    `owner` is the account of the person that it belongs to, `disabled_by` the account whose call disabled it last,
    `current_version` the id of the current version, `canary` that of the version that runs beside it, `last_version`
    that of the latest one, `template` the digest of the pod template that was asked for last, `deletion` who has
    ordered its deletion. `versions` has all versions or, where those that have ended don't matter, only the active ones
    (`reside.alpha.active_versions`); `last_healthy_version` is the last one of the others that was healthy.
    """

    id: int
    name: str
    identity: str
    info: ReplicaInfo
    account: str
    owner: str | None = None
    disabled_by: str | None = None
    control_block: str
    agent_secret: str | None = None
    management: Management = Field(default_factory=Management)
    template: str | None = None
    deletion: Decision | None = None
    current_version: int | None = None
    canary: int | None = None
    last_version: int | None = None
    last_healthy_version: int | None = None
    versions: tuple[ReplicaVersion, ...] = ()

    def version(self, number: int) -> ReplicaVersion:
        """Return the version with this id; raise a KeyError if it does not exist."""
        for version in self.versions:
            if version.id == number:
                return version
        raise KeyError(number)

    @property
    def canary_version(self) -> ReplicaVersion | None:
        """The canary; None if there is none, or if it is aborted and the member `canary` was not removed yet."""
        found = (version for version in self.versions if version.id == self.canary and version.rolled_back_to is None)
        return next(found, None)

    def is_wanted(self, version: ReplicaVersion) -> bool:
        """Return whether a version is the current one or the canary."""
        is_canary = version.id == self.canary and version.rolled_back_to is None
        return version.id == self.current_version or is_canary
