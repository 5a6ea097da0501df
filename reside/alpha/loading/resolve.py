"""Resolution: pure functions from a manifest and the state of the cluster to an approve request.

A manifest that can't be resolved raises `LoadRefused`; the request stores the message as `errorMessage`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reside.alpha.loading.difference import difference
from reside.alpha.loading.placeholders import replica_values, substitute
from reside.model.entities import ApproveRequest, GrantedPermission, ReplicaChoice, Requirement
from reside.model.errors import LoadRefused
from reside.model.manifest import ReplicaManifest
from reside.model.permission_checks import check_permission

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from reside.model.entities import Replica
    from reside.model.manifest import ContractManifest, Manifest, ManifestRequirement, RequiredPermission
    from reside.registry import Description

MAX_CONTRACTS: Final = 64
"""Contracts that a manifest may implement or require; each is fetched from a registry."""
_USER_ID: Final = re.compile(r"0*[1-9][0-9]{0,9}")
"""The id of a user other than root, as Kubernetes reads it from an image."""
_LONGEST_USER: Final = 40
"""Letters of a user that are shown."""


@dataclass(frozen=True)
class ClusterState:
    """The state of the cluster when a request is validated.

    Attributes:
        existing: the replica to update; None for a new instance.
        name: the replica's name, or the first free one for a new instance.
        contracts: the latest manifest of every contract that the manifest requires or implements.
        providers: contract identity → replicas that implement it, sorted by id.
    """

    existing: Replica | None
    name: str
    contracts: Mapping[str, ContractManifest]
    providers: Mapping[str, Sequence[ReplicaChoice]]


def replica_manifest(
    manifest: Manifest, identity: str, located: Callable[[str], str] = lambda name: name
) -> ReplicaManifest:
    """Return the manifest if it is that of a replica and has the identity of its image.

    Args:
        manifest: the manifest in the image.
        identity: the name of the image, without tag and digest.
        located: returns the name under which the images of an identity are; see `reside.model.locations`.

    Raises:
        LoadRefused: it is the manifest of a contract, or has the identity of another image.
    """
    if not isinstance(manifest, ReplicaManifest):
        raise LoadRefused(f"image {identity} is a contract, not a replica: load the image of a replica")
    if located(manifest.identity) != located(identity):
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


def check_runnable(image: str, described: Description) -> None:
    """Refuse an image whose processes would run as root: Kubernetes would never start its pods (`runAsNonRoot`).

    A user that is a name is refused, too: the kubelet can't verify that it is not root.
    """
    user = described.user.partition(":")[0]
    if described.layered and _USER_ID.fullmatch(user) is None:
        found = f"the user {user[:_LONGEST_USER]!r}, whose id is not known" if user not in ("", "0", "root") else "root"
        raise LoadRefused(f"image {image} runs as {found}: set a numeric user in its Dockerfile, such as `USER 65532`")


def check_registry(identity: str, allowed: Sequence[str]) -> None:
    """Refuse an image of a registry that the cluster does not allow; an empty list allows all."""
    host = identity.partition("/")[0]
    if allowed and host not in allowed:
        raise LoadRefused(
            f"images of registry {host} may not be loaded: use {', '.join(allowed)}, or change the cluster's setting "
            "allowedRegistries"
        )


def contract_identities(manifest: ReplicaManifest) -> tuple[str, ...]:
    """Return the identities of all contracts that the manifest implements or requires, sorted.

    Raises:
        LoadRefused: there are more than `MAX_CONTRACTS`.
    """
    identities = {i.identity for i in manifest.implementations.values()} | {
        r.identity for r in manifest.requirements.values()
    }
    if len(identities) > MAX_CONTRACTS:
        raise LoadRefused(
            f"the manifest names {len(identities)} contracts, and at most {MAX_CONTRACTS} are read: split the replica"
        )
    return tuple(sorted(identities))


def approve_request(manifest: ReplicaManifest, digest: str, state: ClusterState) -> ApproveRequest:
    """Return what the approver reviews.

    Raises:
        LoadRefused: `info` has changed, the identity is that of another replica, a requirement can't be met, or a
            permission is unknown or has invalid params.
    """
    check_existing(manifest, state.existing)
    values = replica_values(state.name, manifest.identity)
    before = _current_requirements(state.existing)
    requirements = {
        key: _requirement(key, required, state, values, before.get(key))
        for key, required in manifest.requirements.items()
    }
    return ApproveRequest(
        info=manifest.info,
        name=state.name,
        identity=manifest.identity,
        digest=digest,
        display_info=manifest.display_info,
        probes=manifest.health,
        implementations={key: i.identity for key, i in manifest.implementations.items()},
        requirements=requirements,
        difference=difference(state.existing, requirements),
    )


def check_existing(manifest: ReplicaManifest, existing: Replica | None) -> None:
    """Refuse a version whose identity or info differs from that of the replica."""
    if existing is None:
        return
    if existing.identity != manifest.identity:
        raise LoadRefused(
            f"replica {existing.name} (id {existing.id}) has images of {existing.identity}, "
            f"not of {manifest.identity}: leave the replica id out to create a new instance"
        )
    before, now = existing.info.model_dump(by_alias=True), manifest.info.model_dump(by_alias=True)
    changed = [f"{member} {before[member]!r} → {now[member]!r}" for member in before if before[member] != now[member]]
    if changed:
        raise LoadRefused(
            f"info of replica {existing.name} can't change after its first load ({', '.join(changed)}): "
            "keep it, or give the replica a new identity"
        )


def _current_requirements(existing: Replica | None) -> Mapping[str, Requirement]:
    if existing is None or existing.current_version is None:
        return {}
    return existing.version(existing.current_version).requirements


def _requirement(
    key: str,
    required: ManifestRequirement,
    state: ClusterState,
    values: Mapping[str, str],
    before: Requirement | None,
) -> Requirement:
    providers = state.providers.get(required.identity, ())
    contract = state.contracts[required.identity]
    if not providers and not required.optional:
        raise LoadRefused(
            f"requirement {key!r}: no replica implements {required.identity}: load a replica that does first"
        )
    same = before if before is not None and before.contract == required.identity else None
    replicas, chosen = _providers(required, providers, same)
    return Requirement(
        contract=required.identity,
        display_info=required.display_info,
        replicas=replicas,
        alternatives=tuple(p for p in providers if p not in replicas),
        chosen=chosen,
        permissions=tuple(_permission(key, permission, contract, values) for permission in required.permissions),
        optional=required.optional,
        multiple=required.multiple,
    )


def _providers(
    required: ManifestRequirement, providers: Sequence[ReplicaChoice], before: Requirement | None
) -> tuple[tuple[ReplicaChoice, ...], bool]:
    """Return the replicas that serve a requirement, and whether an approver has chosen them.

    An earlier choice of an approver is kept as far as the chosen replicas still serve the contract. Without one, a
    requirement keeps the replica that served it, and a multiple one takes all that serve it.
    """
    offered = {provider.id: provider for provider in providers}
    kept = tuple(offered[r.id] for r in before.replicas if r.id in offered) if before is not None else ()
    if before is not None and before.chosen:
        kept = kept if required.multiple else kept[:1]
        if kept or (required.optional and not before.replicas):
            return kept, True
    if required.multiple:
        return tuple(providers), False
    return (kept or tuple(providers))[:1], False


def _permission(
    key: str, required: RequiredPermission, contract: ContractManifest, values: Mapping[str, str]
) -> GrantedPermission:
    """Return a permission as it waits for approval, with its placeholders replaced."""
    final = required.model_copy(
        update={
            "params": substitute(required.params, values),
            "instance_id": substitute(required.instance_id, values),
        }
    )
    instance = check_permission(f"requirement {key!r}", final, contract)
    return GrantedPermission(status="pending", permission=required.name, instance_id=instance, params=final.params)


def choose(request: ApproveRequest, choices: Mapping[str, Sequence[int]]) -> dict[str, Requirement]:
    """Apply the approver's choices to the requirements; those without a choice stay as resolved.

    Raises:
        LoadRefused: a requirement is unknown, a replica is not an alternative, a requirement that is not optional has
            no replica, or one that is not multiple has several.
    """
    unknown = sorted(set(choices) - set(request.requirements))
    if unknown:
        known = ", ".join(sorted(request.requirements)) or "none"
        raise LoadRefused(f"requirement {', '.join(unknown)} does not exist; the request has {known}")
    return {
        key: _chosen(key, requirement, choices[key]) if key in choices else requirement
        for key, requirement in request.requirements.items()
    }


def _chosen(key: str, requirement: Requirement, ids: Sequence[int]) -> Requirement:
    offered = {choice.id: choice for choice in (*requirement.replicas, *requirement.alternatives)}
    unknown = sorted({str(i) for i in ids if i not in offered})
    if unknown:
        known = ", ".join(f"{choice.id} ({choice.name})" for choice in offered.values()) or "none"
        raise LoadRefused(
            f"requirement {key!r}: replica {', '.join(unknown)} does not implement its contract; choose from {known}"
        )
    if not ids and not requirement.optional:
        raise LoadRefused(f"requirement {key!r} is not optional: choose a replica")
    distinct = tuple(dict.fromkeys(ids))
    if len(distinct) > 1 and not requirement.multiple:
        raise LoadRefused(f"requirement {key!r} accepts one replica, not {len(distinct)}: choose one")
    replicas = tuple(offered[i] for i in distinct)
    rest = tuple(choice for choice in offered.values() if choice.id not in distinct)
    return requirement.model_copy(update={"replicas": replicas, "alternatives": rest, "chosen": True})


def approved(requirements: Mapping[str, Requirement]) -> dict[str, Requirement]:
    """Return the requirements with their pending permissions approved."""
    return {
        key: requirement.model_copy(update={"permissions": tuple(_approved(p) for p in requirement.permissions)})
        for key, requirement in requirements.items()
    }


def _approved(permission: GrantedPermission) -> GrantedPermission:
    return permission.model_copy(update={"status": "approved"}) if permission.status == "pending" else permission
