"""Faults of a cluster before a bootstrap: missing rights, faults that last, and what to do about known errors."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pytest
from lightkube.core.exceptions import ApiError
from lightkube.models.authorization_v1 import ResourceRule
from lightkube.models.meta_v1 import Status
from lightkube.resources.core_v1 import Event, PersistentVolume, PersistentVolumeClaim
from lightkube.resources.storage_v1 import StorageClass

from reside.access.cures import with_cure
from reside.model.errors import InvalidInput, NotReady
from reside.seed import settings
from reside.seed.blocked import PATIENCE_S, Blocked, unbound_claim
from reside.seed.preflight import check_clock, check_storage, missing_rights

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = pytest.mark.anyio
IMAGES = dict.fromkeys(("alpha", "kubernetes-sentinel", "seed", "jazz", "etcd"), "r/x@sha256:" + "c" * 64)
SETTINGS = settings.parse({"namespace": "reside", "images": IMAGES}, "test")


class Api:
    """A Kubernetes API that has some objects, and refuses each creation."""

    def __init__(self, *objects: Any) -> None:
        self._objects = objects

    async def list(self, kind: Any, **_: object) -> AsyncIterator[Any]:
        """Yield the objects of a kind."""
        for found in self._objects:
            if isinstance(found, kind):
                yield found

    async def get(self, kind: Any, name: str) -> Any:
        """Return an object."""
        return next(found for found in self._objects if isinstance(found, kind) and found.metadata.name == name)

    async def create(self, _body: object, **_: object) -> None:
        """Refuse an object."""
        raise ApiError(status=Status(code=400, message="admission webhook x does not support dry run"))


REQUIRED = [{"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get", "create"]}]


@pytest.mark.parametrize(
    ("granted", "missing"),
    [
        ([], ["get, create deployments"]),
        ([ResourceRule(["*"], apiGroups=["*"], resources=["*"])], []),
        ([ResourceRule(["get"], apiGroups=["apps"], resources=["deployments"])], ["create deployments"]),
        ([ResourceRule(["get", "create"], apiGroups=[""], resources=["deployments"])], ["get, create deployments"]),
        (
            [ResourceRule(["*"], apiGroups=["apps"], resources=["*"], resourceNames=["one"])],
            ["get, create deployments"],
        ),
        (
            [
                ResourceRule(["get"], apiGroups=["apps"], resources=["*"]),
                ResourceRule(["create"], apiGroups=["apps"], resources=["deployments", "daemonsets"]),
            ],
            [],
        ),
    ],
    ids=["none", "administrator", "read only", "another group", "named objects", "two rules"],
)
def test_rights_that_are_not_granted_are_missing(granted: list[ResourceRule], missing: list[str]) -> None:
    assert missing_rights(REQUIRED, granted) == missing


def test_a_right_to_a_kind_of_subresources_of_everything_is_enough() -> None:
    required = [{"apiGroups": [""], "resources": ["pods/portforward", "pods"], "verbs": ["create"]}]
    granted = [ResourceRule(["create"], apiGroups=[""], resources=["*/portforward"])]
    assert missing_rights(required, granted) == ["create pods"]


async def test_a_cluster_that_refuses_dry_runs_can_be_used() -> None:
    api: Any = Api()
    await check_clock(api)


def storage_class(annotation: str) -> StorageClass:
    return StorageClass.from_dict(
        {"metadata": {"name": "disk", "annotations": {annotation: "true"}}, "provisioner": "p"}
    )


@pytest.mark.parametrize(
    ("found", "is_enough"),
    [
        (storage_class("storageclass.kubernetes.io/is-default-class"), True),
        (storage_class("storageclass.beta.kubernetes.io/is-default-class"), True),
        (PersistentVolume.from_dict({"metadata": {"name": "made"}, "spec": {}}), True),
        (PersistentVolume.from_dict({"metadata": {"name": "made"}, "spec": {"storageClassName": "slow"}}), False),
        (storage_class("another"), False),
    ],
)
async def test_each_way_to_get_a_volume_without_a_named_class_is_known(found: Any, is_enough: bool) -> None:
    api: Any = Api(found)
    if is_enough:
        await check_storage(api, SETTINGS)
    else:
        with pytest.raises(InvalidInput, match="there is no default StorageClass"):
            await check_storage(api, SETTINGS)


def event(minute: int, message: str) -> Event:
    at = dt.datetime(2026, 1, 1, 0, minute, tzinfo=dt.UTC).isoformat()
    metadata = {"name": str(minute)}
    return Event.from_dict({"metadata": metadata, "involvedObject": {}, "lastTimestamp": at, "message": message})


async def test_an_event_of_a_fault_that_is_over_blocks_nothing() -> None:
    missing, going_on = 'storageclass.storage.k8s.io "disk" not found', "waiting for a volume to be created"
    claim = PersistentVolumeClaim.from_dict({"metadata": {"name": "jazz"}, "status": {"phase": "Pending"}})
    for events in ((event(2, going_on), event(1, missing)), (event(1, missing), event(2, going_on)), ()):
        over: Any = Api(claim, *events)
        assert await unbound_claim(over, "jazz") is None
    again: Any = Api(claim, event(1, going_on), event(2, missing))
    assert (await unbound_claim(again, "jazz") or "").startswith(missing)


def test_a_fault_ends_a_wait_only_once_it_has_lasted() -> None:
    """A quota can be used up by pods that are being replaced."""
    clock = [0.0]
    blocked = Blocked("jazz", 300, lambda: clock[0])
    blocked.check("exceeded quota: a")
    clock[0] = PATIENCE_S - 1
    blocked.check(None)
    clock[0] = PATIENCE_S
    blocked.check("exceeded quota: a")
    clock[0] = 2 * PATIENCE_S - 1
    blocked.check("exceeded quota: a")
    clock[0] = 2 * PATIENCE_S
    with pytest.raises(NotReady, match="jazz gets no pod: exceeded quota: a: raise the quota"):
        blocked.check("exceeded quota: a")


@pytest.mark.parametrize(
    ("text", "cure"),
    [
        ('pods "x" is forbidden: exceeded quota: tight, requested: pods=1', "`kubectl describe resourcequota tight`"),
        ("failed quota: tight: must specify limits.cpu", "set defaults for containers by a LimitRange"),
        ('secrets is forbidden: User "ada" cannot create', "the Role `seed` in `reside cluster manifest`"),
        ("get stack secrets manager: incorrect passphrase", "PULUMI_CONFIG_PASSPHRASE"),
        ("write /x: no space left on device", "free disk space"),
        ("/x: No space left on device", "free disk space"),
    ],
)
def test_a_known_fault_is_followed_by_its_cure(text: str, cure: str) -> None:
    assert with_cure(text).startswith(f"{text}: ")
    assert cure in with_cure(text)


def test_an_unknown_fault_stays_as_it_is() -> None:
    assert with_cure("jazz does not respond") == "jazz does not respond"
