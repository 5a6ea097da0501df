"""Manifests: the label `io.reside.manifest` of a replica's or contract's image (docs/model.md, section 2).

The label is base64 of a JSON document. Unknown members are errors, so that a misspelt one is noticed; those that only
the first implementation of ReSide knew are ignored.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, field_validator, model_validator
from pydantic.alias_generators import to_camel

from reside.common.validation import describe_faults
from reside.model.errors import InvalidManifest, InvalidName
from reside.model.identities import resolved
from reside.model.names import check_name

MAX_IDENTITY: Final = 255
Identity = Annotated[str, Field(pattern=r"^[a-z0-9.:-]+(/[a-z0-9._-]+)+$", max_length=MAX_IDENTITY)]
MAX_DEPTH = 64
"""Maximum nesting of a manifest; far below the limit of recursive code that processes it later."""
EARLIER_MEMBERS: Final = frozenset({"packages", "avatarPrompt", "testingPackages"})
"""Members of a manifest of the first implementation that say nothing to a cluster."""
ContractKey = Annotated[str, Field(pattern=r"^[a-zA-Z][a-zA-Z0-9-]*$", max_length=63)]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, alias_generator=to_camel)


class DisplayText(_Model):
    """Text for people, in one language."""

    title: str
    description: str = ""


DisplayInfo = dict[str, DisplayText]


class ReplicaInfo(_Model):
    """Properties that are the same in all versions of a replica."""

    name: str
    kind: Literal["long-running", "oneshot"] = Field(validation_alias="class", serialization_alias="class")
    exclusive: bool
    scalable: bool

    @field_validator("name")
    @classmethod
    def _name_is_valid(cls, name: str) -> str:
        try:
            return check_name(name)
        except InvalidName as error:
            raise ValueError(str(error)) from None


class Implementation(_Model):
    """A contract that the replica implements."""

    identity: Identity


class RequiredPermission(_Model):
    """A permission that the replica requires of the replica that implements a contract."""

    name: str
    instance_id: str | None = None
    params: dict[str, Any] = Field(default_factory=dict)

    @field_validator("instance_id")
    @classmethod
    def _empty_is_none(cls, instance: str | None) -> str | None:
        return instance or None  # the first implementation wrote an empty id for a permission without instances


class ManifestRequirement(_Model):
    """A contract that the replica needs another replica to implement."""

    identity: Identity
    display_info: DisplayInfo = Field(default_factory=dict)
    optional: bool = False
    multiple: bool = False
    permissions: tuple[RequiredPermission, ...] = ()


class _Label(_Model):
    @model_validator(mode="before")
    @classmethod
    def _without_earlier_members(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        return {name: value for name, value in data.items() if name not in EARLIER_MEMBERS}


_Named = TypeVar("_Named", "Implementation", "ManifestRequirement", "ContractManifest")


class ReplicaManifest(_Label):
    """The label of a replica's image.

    `health` is `none` for an image that answers no probes: its pods count as ready once their process runs.
    """

    type: Literal["replica"]
    identity: Identity
    info: ReplicaInfo
    display_info: DisplayInfo = Field(default_factory=dict)
    health: Literal["none"] | None = None
    implementations: dict[ContractKey, Implementation] = Field(default_factory=dict)
    requirements: dict[ContractKey, ManifestRequirement] = Field(default_factory=dict)

    def resolved(self) -> ReplicaManifest:
        """Return the manifest with the identities that its names mean in this cluster (`reside.model.identities`)."""
        return self.model_copy(
            update={
                "identity": _identity(self.identity),
                "implementations": {key: _resolved(found) for key, found in self.implementations.items()},
                "requirements": {key: _resolved(found) for key, found in self.requirements.items()},
            }
        )


class ContractPermission(_Model):
    """A permission that a contract defines; `params` is a JSON Schema of its parameters."""

    display_info: DisplayInfo = Field(default_factory=dict)
    instance_keys: tuple[str, ...] = ()
    params: dict[str, Any] | None = None


class ContractMethod(_Model):
    """An RPC method that a contract defines; `body` and `returns` are JSON Schemas of its request and its response."""

    display_info: DisplayInfo = Field(default_factory=dict)
    body: dict[str, Any] | None = None
    returns: dict[str, Any] | None = None


class ContractManifest(_Label):
    """The label of a contract's image."""

    type: Literal["contract"]
    identity: Identity
    display_info: DisplayInfo = Field(default_factory=dict)
    permissions: dict[str, ContractPermission] = Field(default_factory=dict)
    methods: dict[str, ContractMethod] = Field(default_factory=dict)

    def resolved(self) -> ContractManifest:
        """Return the manifest with the identity that its name means in this cluster (`reside.model.identities`)."""
        return _resolved(self)


def _resolved(named: _Named) -> _Named:
    return (
        named
        if (found := _identity(named.identity)) == named.identity
        else named.model_copy(update={"identity": found})
    )


def _identity(name: str) -> str:
    identity = resolved(name)
    if len(identity) > MAX_IDENTITY:
        raise InvalidManifest(f"the identity {identity} has more than {MAX_IDENTITY} characters: choose a shorter name")
    return identity


Manifest = ReplicaManifest | ContractManifest
_ADAPTER: TypeAdapter[Manifest] = TypeAdapter(Annotated[Manifest, Field(discriminator="type")])


def parse_manifest(data: Any) -> Manifest:
    """Return the manifest of a JSON document.

    Raises:
        InvalidManifest: `data` does not match the schema; the message names each invalid member.
    """
    try:
        return _ADAPTER.validate_python(data)
    except ValidationError as error:
        faults = describe_faults(error, "document", skip=1)  # the first part is the type of manifest
        raise InvalidManifest(f"the manifest does not match the schema of io.reside.manifest: {faults}") from None


def decode_label(value: str) -> Manifest:
    """Return the manifest of a label's value.

    Raises:
        InvalidManifest: the value is not base64 or not JSON, or does not match the schema.
    """
    try:
        raw = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidManifest("label io.reside.manifest is not base64: build the image with `reside build`") from None
    try:
        data = json.loads(raw, parse_constant=_no_constant)
        json.dumps(data, ensure_ascii=False).encode()  # raises for lone surrogates, which can't be stored
    except (ValueError, RecursionError):
        raise InvalidManifest(
            "label io.reside.manifest is base64 of something that is not JSON: build the image with `reside build`"
        ) from None
    if _depth(data) > MAX_DEPTH:
        raise InvalidManifest(f"label io.reside.manifest is nested deeper than {MAX_DEPTH} levels: reduce the nesting")
    return parse_manifest(data)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _depth(data: Any) -> int:
    """Return the levels of nesting, computed without recursion."""
    depth, level = 0, [data]
    while level:
        inner = [item for item in level if isinstance(item, dict | list)]
        level = [child for item in inner for child in (item.values() if isinstance(item, dict) else item)]
        depth += bool(inner)
    return depth


def document(manifest: Manifest) -> dict[str, Any]:
    """Return the manifest's JSON document, with the member names of the label."""
    return manifest.model_dump(mode="json", by_alias=True, exclude_none=True)


def encode_label(manifest: Manifest) -> str:
    """Return the label's value: base64 of canonical JSON, so that equal manifests have equal labels."""
    text = json.dumps(document(manifest), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return base64.b64encode(text.encode()).decode()
