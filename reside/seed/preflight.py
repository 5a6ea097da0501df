"""What a bootstrap needs of a Kubernetes cluster, checked before it creates anything and whenever it waits otherwise.

Each check reads; what this user may not read is not checked. An error names the thing and the cure.
"""

from __future__ import annotations

import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from lightkube.core.exceptions import ApiError
from lightkube.models.authorization_v1 import ResourceRule, SelfSubjectRulesReviewSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.authorization_v1 import SelfSubjectRulesReview
from lightkube.resources.core_v1 import ConfigMap, PersistentVolume, PersistentVolumeClaim
from lightkube.resources.networking_v1 import IngressClass
from lightkube.resources.storage_v1 import StorageClass

from reside.model.constants import ETCD_NAME, JAZZ_NAME, SEED_NAME
from reside.model.errors import InvalidInput, NotAllowed
from reside.seed import platform

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import lightkube

    from reside.seed.settings import BootstrapSettings

MAXIMUM_SKEW_S: Final = 30.0
"""Difference of the clocks at which a bootstrap is refused. Readers ignore edits that are dated a minute ahead."""
_DEFAULT_STORAGE: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_DEFAULT_INGRESS: Final = ("ingressclass.kubernetes.io/is-default-class",)
_NO_CLASS: Final = ""
_INGRESS_ANNOTATION: Final = "kubernetes.io/ingress.class"


async def check(
    client: lightkube.AsyncClient, settings: BootstrapSettings, now: Callable[[], float] = time.time
) -> None:
    """Check the clock, the StorageClass and the IngressClass.

    Raises:
        InvalidInput: one of them does not fit.
    """
    await check_clock(client, now)
    await check_storage(client, settings)
    await check_ingress(client, settings)


async def check_rights(client: lightkube.AsyncClient, settings: BootstrapSettings) -> None:
    """Check that this user may do all that the bootstrap does in the namespace.

    Raises:
        NotAllowed: a right is missing.
    """
    review = SelfSubjectRulesReview(spec=SelfSubjectRulesReviewSpec(namespace=settings.namespace))
    try:
        answer = await client.create(review)
    except ApiError as error:
        if error.status.code == HTTPStatus.FORBIDDEN:
            return
        raise
    if answer.status is None or answer.status.incomplete:
        return  # an authorizer that does not list rights; Kubernetes refuses what is not allowed
    missing = missing_rights(required(settings), answer.status.resourceRules)
    if missing:
        raise NotAllowed(
            f"this user of Kubernetes may not {'; '.join(missing)} in namespace {settings.namespace}: ask an "
            f"administrator for the rights of the Role `{SEED_NAME}` in `reside cluster manifest`"
        )


def missing_rights(required: Iterable[dict[str, Any]], granted: Iterable[ResourceRule]) -> list[str]:
    """Return the required rights that are not granted, such as `create, patch secrets`.

    A rule for named objects grants nothing: the bootstrap creates objects.
    """
    rules = [rule for rule in granted if not rule.resourceNames]

    def has(group: str, resource: str, verb: str) -> bool:
        return any(
            {verb, "*"} & set(rule.verbs or ())
            and {group, "*"} & set(rule.apiGroups or ())
            and {resource, f"*/{resource.partition('/')[2]}", "*"} & set(rule.resources or ())
            for rule in rules
        )

    found = []
    for rule in required:
        for resource in rule["resources"]:
            (group,) = rule["apiGroups"]
            verbs = [verb for verb in rule["verbs"] if not has(group, resource, verb)]
            if verbs:
                found.append(f"{', '.join(verbs)} {resource}")
    return found


def required(settings: BootstrapSettings) -> list[dict[str, Any]]:
    """Return the RBAC rules of what a bootstrap does in the namespace: it gives them to the Sentinel."""
    rules = [*platform.sentinel_rules(), *platform.event_rules(), *platform.log_rules()]
    rules += platform.route_rules() if settings.gateway else []
    if settings.access == "port-forward":
        rules.append({"apiGroups": [""], "resources": ["pods/portforward"], "verbs": ["create"]})
    return rules


async def check_clock(client: lightkube.AsyncClient, now: Callable[[], float] = time.time) -> None:
    """Compare this machine's clock with that of the Kubernetes API: it dates an object that is not stored.

    Some clusters refuse such an object, for example because a webhook can't be asked about it. The clock is not checked
    then.

    Raises:
        InvalidInput: they differ too much.
    """
    before = now()
    probe = ConfigMap(metadata=ObjectMeta(generateName="reside-clock-"))
    try:
        answer = await client.create(probe, dry_run=True)
    except ApiError:
        return
    after = now()
    created = answer.metadata.creationTimestamp if answer.metadata else None
    if created is None:
        return
    there = created.timestamp()  # in whole seconds
    skew = before - there if before - there > 1 else min(0.0, after - there)
    if abs(skew) > MAXIMUM_SKEW_S:
        side = "ahead of" if skew > 0 else "behind"
        raise InvalidInput(
            f"the clock of this machine is {abs(skew):.0f} s {side} that of the Kubernetes API, and pods "
            "ignore data that is dated ahead: synchronise both clocks (`timedatectl set-ntp true`)"
        )


async def check_storage(client: lightkube.AsyncClient, settings: BootstrapSettings) -> None:
    """Check that the StorageClass of new volumes exists.

    Raises:
        InvalidInput: it does not, or there is no default one.
    """
    if await _has_claims(client):
        return
    classes = await _readable(client, StorageClass)
    if classes is None:
        return
    names, volumes = [str(each.metadata.name) for each in classes], await _volumes(client)
    offered = _offer(names, "a volume provisioner")
    if settings.storage_class is not None and settings.storage_class not in {*names, *volumes}:
        raise InvalidInput(
            f"StorageClass {settings.storage_class} does not exist: set storageClass (--storage-class): {offered}"
        )
    has_default = _NO_CLASS in volumes or any(_is_default(each, _DEFAULT_STORAGE) for each in classes)
    if settings.storage_class is None and not has_default:
        raise InvalidInput(f"there is no default StorageClass: set storageClass (--storage-class): {offered}")


async def check_ingress(client: lightkube.AsyncClient, settings: BootstrapSettings) -> None:
    """Check that an ingress controller serves the Ingresses of a cluster with a domain.

    Raises:
        InvalidInput: the IngressClass does not exist, or there is no default one.
    """
    if not settings.domain or settings.gateway or _INGRESS_ANNOTATION in settings.ingress_annotations:
        return
    classes = await _readable(client, IngressClass)
    if classes is None:
        return
    names = [str(each.metadata.name) for each in classes]
    offered = (
        f"one of {', '.join(sorted(names))}" if names else "the cluster has none, so install an ingress controller"
    )
    if settings.ingress_class is not None and settings.ingress_class not in names:
        raise InvalidInput(
            f"IngressClass {settings.ingress_class} does not exist: set ingressClass (--ingress-class): {offered}"
        )
    if settings.ingress_class is None and not any(_is_default(each, _DEFAULT_INGRESS) for each in classes):
        raise InvalidInput(
            f"domain {settings.domain} needs an ingress controller, and there is no default IngressClass: set "
            f"ingressClass (--ingress-class): {offered}; or set the annotation {_INGRESS_ANNOTATION} "
            "(--ingress-annotation) for a controller without one"
        )


async def _has_claims(client: lightkube.AsyncClient) -> bool:
    """Return whether the volume claims exist already: their StorageClass can't be changed."""
    names = {str(claim.metadata.name) async for claim in client.list(PersistentVolumeClaim) if claim.metadata}
    return {JAZZ_NAME, ETCD_NAME} <= names


async def _volumes(client: lightkube.AsyncClient) -> set[str]:
    """Return the classes of volumes that were made by hand; they need no StorageClass, or name none."""
    found = await _readable(client, PersistentVolume) or []
    return {each.spec.storageClassName or _NO_CLASS for each in found if each.spec}


def _offer(names: list[str], needed: str) -> str:
    return f"one of {', '.join(sorted(names))}" if names else f"the cluster has none, so install {needed}"


async def _readable(client: lightkube.AsyncClient, kind: Any) -> list[Any] | None:
    """Return all objects of a kind that has no namespace; None if this user may not read them."""
    try:
        return [each async for each in client.list(kind)]
    except ApiError as error:
        if error.status.code == HTTPStatus.FORBIDDEN:
            return None
        raise


def _is_default(found: Any, annotations: Iterable[str]) -> bool:
    present = (found.metadata.annotations if found.metadata else None) or {}
    return any(present.get(annotation) == "true" for annotation in annotations)
