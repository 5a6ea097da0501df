"""What a manifest asks for, resolved against the world: pure functions from what is known to an approve request.

Every refusal is a `LoadRefused` whose message names the thing and the cure; the request keeps it as `errorMessage`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NoReturn

import jsonschema_rs

from reside.alpha.loading.placeholders import replica_values, substitute
from reside.model.entities import ApproveRequest, GrantedPermission, ReplicaChoice, Requirement
from reside.model.errors import LoadRefused
from reside.model.manifest import ReplicaManifest
from reside.model.names import free_name

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from reside.model.entities import Replica
    from reside.model.manifest import ContractManifest, Manifest, ManifestRequirement, RequiredPermission

_PATTERNS: Final = jsonschema_rs.RegexOptions()
"""Regular expressions that take linear time: a contract's `pattern` must not be able to hold the leading Alpha up."""

Contracts = dict[str, "ContractManifest"]
Providers = dict[str, "Sequence[ReplicaChoice]"]


@dataclass(frozen=True)
class World:
    """What Alpha knows at the moment of a validation.

    Attributes:
        existing: the replica that is updated; None for a new instance.
        taken: names of instances and of open load requests, this request's own left out.
        contracts: every contract that the manifest requires or implements, freshly fetched.
        providers: contract identity → replicas that implement it, in order of their ids.
    """

    existing: Replica | None
    taken: Collection[str]
    contracts: Contracts
    providers: Providers


def replica_manifest(manifest: Manifest, identity: str) -> ReplicaManifest:
    """The manifest of a replica's image, if it is one and speaks of this image.

    Raises:
        LoadRefused: it is a contract's, or its identity is another image's.
    """
    if not isinstance(manifest, ReplicaManifest):
        raise LoadRefused(f"image {identity} is a contract, not a replica: load the image of a replica")
    if manifest.identity != identity:
        raise LoadRefused(
            f"the manifest's identity is {manifest.identity}, but the image is {identity}: "
            "push the image to the repository that its manifest names"
        )
    check_implementations(manifest)
    return manifest


def check_implementations(manifest: ReplicaManifest) -> None:
    """Refuse a manifest that implements one contract under two keys."""
    seen: dict[str, str] = {}
    for key, implementation in manifest.implementations.items():
        if implementation.identity in seen:
            raise LoadRefused(
                f"contract {implementation.identity} is implemented twice, as {seen[implementation.identity]!r} "
                f"and {key!r}: keep one of them"
            )
        seen[implementation.identity] = key


def contract_identities(manifest: ReplicaManifest) -> tuple[str, ...]:
    """Identity of every contract that the manifest implements or requires, each once, sorted."""
    wanted = {i.identity for i in manifest.implementations.values()} | {
        r.identity for r in manifest.requirements.values()
    }
    return tuple(sorted(wanted))


def approve_request(
    manifest: ReplicaManifest, digest: str, world: World, requested_name: str | None = None
) -> ApproveRequest:
    """What the approver shall see.

    Raises:
        LoadRefused: `info` changed, the identity is another replica's, a requirement can't be met, or a permission is
            unknown or has wrong params.
        InvalidName: the requested name is none.
    """
    check_existing(manifest, world.existing)
    name = world.existing.name if world.existing else free_name(requested_name or manifest.info.name, world.taken)
    values = replica_values(name, manifest.identity)
    return ApproveRequest(
        info=manifest.info,
        name=name,
        identity=manifest.identity,
        digest=digest,
        display_info=manifest.display_info,
        implementations={key: i.identity for key, i in manifest.implementations.items()},
        requirements={
            key: _requirement(key, wish, world.contracts[wish.identity], world.providers.get(wish.identity, ()), values)
            for key, wish in manifest.requirements.items()
        },
    )


def check_existing(manifest: ReplicaManifest, existing: Replica | None) -> None:
    """Refuse a version whose identity or info is not the replica's."""
    if existing is None:
        return
    if existing.identity != manifest.identity:
        raise LoadRefused(
            f"replica {existing.name} (id {existing.id}) is made from {existing.identity}, "
            f"not from {manifest.identity}: leave the replica id out to make a new instance"
        )
    before, now = existing.info.model_dump(by_alias=True), manifest.info.model_dump(by_alias=True)
    changed = [f"{member} {before[member]!r} → {now[member]!r}" for member in before if before[member] != now[member]]
    if changed:
        raise LoadRefused(
            f"info of replica {existing.name} can't change after its first load ({', '.join(changed)}): "
            "keep it, or give the replica a new identity"
        )


def _requirement(
    key: str,
    wish: ManifestRequirement,
    contract: ContractManifest,
    providers: Sequence[ReplicaChoice],
    values: Mapping[str, str],
) -> Requirement:
    if not providers and not wish.optional:
        raise LoadRefused(f"requirement {key!r}: no replica implements {wish.identity}: load one that does first")
    chosen = tuple(providers) if wish.multiple else tuple(providers[:1])
    return Requirement(
        contract=wish.identity,
        display_info=wish.display_info,
        replicas=chosen,
        alternatives=tuple(p for p in providers if p not in chosen),
        permissions=tuple(_permission(key, permission, contract, values) for permission in wish.permissions),
        optional=wish.optional,
        multiple=wish.multiple,
    )


def _permission(
    key: str, wish: RequiredPermission, contract: ContractManifest, values: Mapping[str, str]
) -> GrantedPermission:
    if wish.name not in contract.permissions:
        raise LoadRefused(
            f"requirement {key!r}: contract {contract.identity} has no permission {wish.name!r}; "
            f"it has {', '.join(sorted(contract.permissions)) or 'none'}"
        )
    definition = contract.permissions[wish.name]
    params: dict[str, Any] = substitute(wish.params, values)
    if definition.params is not None:
        _check_params(f"requirement {key!r}: params of permission {wish.name!r}", params, definition.params)
    instance = None if wish.instance_id is None else str(substitute(wish.instance_id, values))
    if instance is None and definition.instance_keys:
        instance = _instance(key, wish.name, definition.instance_keys, params)
    if instance is not None:
        _check_told_apart(key, wish.name, instance, contract.permissions)
    return GrantedPermission(permission=wish.name, instance_id=instance, params=params)


def _instance(key: str, permission: str, keys: Sequence[str], params: Mapping[str, Any]) -> str:
    """The instance that the params name, by the contract's `instanceKeys`."""
    missing = [name for name in keys if name not in params]
    if missing:
        raise LoadRefused(
            f"requirement {key!r}: permission {permission!r} is granted for an instance: "
            f"give instanceId or the params {', '.join(missing)}"
        )
    return ":".join(str(params[name]) for name in keys)


def _check_told_apart(key: str, permission: str, instance: str, known: Iterable[str]) -> None:
    """`a` of the instance `b` and `a:b` would have one key in a control block (docs/model.md, section 3)."""
    for other in known:
        if other.startswith(f"{permission}:") and f"{permission}:{instance}:".startswith(f"{other}:"):
            raise LoadRefused(
                f"requirement {key!r}: the instance {instance!r} of permission {permission!r} can't be told from "
                f"permission {other!r}: name another instance"
            )


def _check_params(what: str, params: dict[str, Any], schema: dict[str, Any]) -> None:
    try:
        validator = jsonschema_rs.validator_for(schema, pattern_options=_PATTERNS, retriever=_refuse_remote)
    except ValueError as error:  # a schema that is none, or too deep; jsonschema_rs.ValidationError is one
        reason = error.message if isinstance(error, jsonschema_rs.ValidationError) else str(error)
        raise LoadRefused(f"{what} can't be checked: the contract's schema is none: {reason}") from None
    try:
        validator.validate(params)
    except ValueError as error:
        if not isinstance(error, jsonschema_rs.ValidationError):
            raise LoadRefused(f"{what} can't be checked: {error}") from None
        where = "/".join(str(part) for part in error.instance_path) or "document"
        raise LoadRefused(f"{what}: {where}: {error.message}") from None


def _refuse_remote(uri: str) -> NoReturn:
    """A schema is what the contract's image carries: what it refers to elsewhere is never fetched."""
    raise ValueError(f"{uri} is not part of it, and nothing is fetched")


def choose(request: ApproveRequest, choices: Mapping[str, Sequence[int]]) -> dict[str, Requirement]:
    """The requirements with the approver's choices applied; those without a choice stay as resolved.

    Raises:
        LoadRefused: an unknown requirement, a replica that is no alternative, none for a requirement that is not
            optional, or several for one that is not multiple.
    """
    unknown = sorted(set(choices) - set(request.requirements))
    if unknown:
        known = ", ".join(sorted(request.requirements)) or "none"
        raise LoadRefused(f"there is no requirement {', '.join(unknown)} to choose for; the request has {known}")
    return {
        key: _chosen(key, requirement, choices[key]) if key in choices else requirement
        for key, requirement in request.requirements.items()
    }


def _chosen(key: str, requirement: Requirement, ids: Sequence[int]) -> Requirement:
    offered = {choice.id: choice for choice in (*requirement.replicas, *requirement.alternatives)}
    wrong = sorted({str(i) for i in ids if i not in offered})
    if wrong:
        can = ", ".join(f"{choice.id} ({choice.name})" for choice in offered.values()) or "none"
        raise LoadRefused(f"requirement {key!r}: replica {', '.join(wrong)} can't serve it; choose out of {can}")
    if not ids and not requirement.optional:
        raise LoadRefused(f"requirement {key!r} is not optional: choose a replica")
    distinct = tuple(dict.fromkeys(ids))
    if len(distinct) > 1 and not requirement.multiple:
        raise LoadRefused(f"requirement {key!r} takes one replica, not {len(distinct)}: choose one")
    replicas = tuple(offered[i] for i in distinct)
    rest = tuple(choice for choice in offered.values() if choice.id not in distinct)
    return requirement.model_copy(update={"replicas": replicas, "alternatives": rest})
