"""A canary runs beside the current version with a share of the pods, until it is promoted, aborted or fails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError
from unit.alpha.entities import CLUSTER, GREETING, OWNER, digest, replica

from reside.alpha.canary import check_canary, has_failed
from reside.alpha.candidate import with_version
from reside.alpha.granting.due import due_grants, holding
from reside.alpha.stacks.pods import pods_of
from reside.alpha.stacks.render import render
from reside.alpha.stacks.rollout import rollout
from reside.alpha.status import changed_versions, newly_starting
from reside.model import constants
from reside.model.entities import (
    ApproveRequest,
    GrantedPermission,
    LoadRequest,
    Management,
    ReplicaChoice,
    Requirement,
)
from reside.model.errors import LoadRefused
from reside.model.reports import ObjectReport, StackReport

if TYPE_CHECKING:
    from reside.model.entities import Replica
    from reside.model.status import VersionStatus

PROVIDER = ReplicaChoice(id=7, name="provider", account="co_zProvider")


def changed(subject: Replica, number: int, **members: Any) -> Replica:
    """Return the replica with other members of one version."""
    versions = tuple(v.model_copy(update=members) if v.id == number else v for v in subject.versions)
    return subject.model_copy(update={"versions": versions})


def with_canary(
    *statuses: VersionStatus, percent: int = 25, pods: int = 4, healthy: bool = True, enabled: bool = True
) -> Replica:
    """Return a replica whose last version is a canary beside the version before."""
    number = len(statuses)
    management = Management(pods=pods, enabled=enabled)
    subject = replica(*statuses, current=number - 1, canary=number, management=management)
    subject = changed(subject, number - 1, was_healthy=True)
    return changed(subject, number, canary_percent=percent, was_healthy=healthy)


def approved(subject: Replica, **members: Any) -> ApproveRequest:
    """Return what a load of an image that fits the replica resolves to."""
    default = {"info": subject.info, "name": subject.name, "identity": subject.identity, "digest": digest(9)}
    return ApproveRequest(**default | {"implementations": {"greeting": GREETING}} | members)


@pytest.mark.parametrize(
    ("pods", "percent", "expected"),
    [
        (1, 25, (1, 1)),
        (2, 25, (1, 1)),
        (4, 25, (3, 1)),
        (4, 50, (2, 2)),
        (5, 50, (3, 2)),  # rounded down
        (10, 1, (9, 1)),
        (10, 99, (1, 9)),
        (100, 30, (70, 30)),
    ],
)
def test_the_pods_are_divided_and_each_version_has_at_least_one(
    pods: int, percent: int, expected: tuple[int, int]
) -> None:
    subject = with_canary("running", "running", pods=pods, percent=percent)
    assert tuple(pods_of(subject, version) for version in subject.versions) == expected


def test_the_current_version_keeps_its_pods_until_the_canary_has_been_healthy() -> None:
    starting = with_canary("running", "starting", healthy=False)
    assert [pods_of(starting, version) for version in starting.versions] == [4, 1]
    crashing = with_canary("running", "degraded")
    assert [pods_of(crashing, version) for version in crashing.versions] == [3, 1]


@pytest.mark.parametrize("percent", [0, 100, -1])
def test_a_share_is_a_percentage_that_leaves_pods_for_both(percent: int) -> None:
    with pytest.raises(ValidationError):
        LoadRequest(id=7, status="validating", image="image", owner="co_z", canary_percent=percent)


@pytest.mark.parametrize("current", ["running", "degraded", "error"])
@pytest.mark.parametrize("canary", ["unknown", "starting", "running", "error"])
def test_both_run_whatever_their_statuses_are(current: VersionStatus, canary: VersionStatus) -> None:
    assert rollout(with_canary(current, canary)) == {1: True, 2: True}


def test_a_disabled_replica_stops_both() -> None:
    assert rollout(with_canary("running", "running", enabled=False)) == {1: False, 2: False}


def test_an_aborted_canary_stops_immediately() -> None:
    for current in ("running", "degraded"):
        subject = changed(with_canary(current, "running"), 2, rolled_back_to=1)
        assert subject.canary_version is None, "even before the member is removed"
        assert rollout(subject) == {1: True, 2: False}
        assert pods_of(subject, subject.version(1)) == 4


def play(subject: Replica, rounds: int = 8) -> tuple[Replica, list[dict[int, int]]]:
    """Let Alpha and a cluster react to each other; return the replica and the ready pods by version in each round.

    A workload gets one pod more or less in each round, and loses all at once when it is scaled to 0.
    """
    ready = {v.id: pods_of(subject, v) for v in subject.versions if v.status in ("running", "running-outdated")}
    seen = []
    for _ in range(rounds):
        stack = render(subject, CLUSTER, owner=OWNER)
        reports = {}
        for key, workload in zip(stack.keys(), stack.objects, strict=True):
            if not key.startswith("Deployment/"):
                continue
            number, wanted = int(key.rpartition("-")[2]), workload["spec"]["replicas"]
            had = ready.get(number, 0)
            ready[number] = 0 if not wanted else min(wanted, had + 1) if had < wanted else max(wanted, had - 1)
            reports[key] = deployment(wanted, ready[number])
        started = newly_starting(subject, stack)
        subject = subject.model_copy(
            update={
                "versions": tuple(
                    v.model_copy(update={"status": started[v.id]}) if v.id in started else v for v in subject.versions
                )
            }
        )
        found = changed_versions(subject, stack, StackReport(stack.revision, None, reports), 0)
        subject = subject.model_copy(update={"versions": tuple(found.get(v.id, v) for v in subject.versions)})
        ready = {number: pods for number, pods in ready.items() if pods}
        seen.append(dict(ready))
    return subject, seen


def deployment(wanted: int, ready: int) -> ObjectReport:
    conditions = [{"type": "Available", "status": "True" if ready >= wanted else "False"}]
    status = {"replicas": ready, "readyReplicas": ready, "conditions": conditions}
    live = {"kind": "Deployment", "metadata": {}, "spec": {"replicas": wanted}, "status": status}
    return ObjectReport("updated", live, None, ready)


def statuses(subject: Replica) -> list[str]:
    return [version.status for version in subject.versions]


def test_a_canary_that_starts_takes_its_share_once_it_runs() -> None:
    end, seen = play(with_canary("running", "unknown", healthy=False))
    assert statuses(end) == ["running", "running"]
    assert seen[0] == {1: 4, 2: 1}
    assert seen[-1] == {1: 3, 2: 1}
    assert all(sum(ready.values()) >= 4 for ready in seen)


def test_a_promoted_canary_replaces_the_old_version_when_all_of_its_pods_are_ready() -> None:
    before = with_canary("running", "running")
    end, seen = play(before.model_copy(update={"current_version": 2, "canary": None}))
    assert statuses(end) == ["stopped", "running"]
    assert seen[-1] == {2: 4}
    for ready in seen:
        assert ready.get(2) == 4 or ready.get(1, 0) >= 3, "the old version serves until the new one has all its pods"


def test_an_aborted_canary_gives_its_share_back() -> None:
    aborted = changed(with_canary("running", "running"), 2, rolled_back_to=1).model_copy(update={"canary": None})
    end, seen = play(aborted)
    assert statuses(end) == ["running", "stopped"]
    assert seen[-1] == {1: 4}


def test_a_scaled_replica_divides_its_pods_again() -> None:
    before = with_canary("running", "running", percent=50)
    scaled = before.model_copy(update={"management": Management(pods=6)})
    end, seen = play(scaled)
    assert (statuses(end), seen[-1]) == (["running", "running"], {1: 3, 2: 3})


def test_a_canary_is_no_outdated_version_and_its_faults_are_not_those_of_the_current_one() -> None:
    subject = with_canary("running", "unknown", healthy=False)
    stack = render(subject, CLUSTER, owner=OWNER)
    fault = ObjectReport("error", None, "quota", None)
    report = StackReport(
        stack.revision, "quota", {"Deployment/greeter-1": deployment(4, 4), "Deployment/greeter-2": fault}
    )
    found = changed_versions(subject, stack, report, 1)
    assert (found[2].status, found[2].reason, found[2].starting_since) == ("error", "quota", 1)
    assert found.get(1, subject.version(1)).status == "running"


def test_a_canary_has_failed_when_it_missed_its_deadline() -> None:
    subject = changed(with_canary("running", "error", healthy=False), 2, starting_since=1)
    assert not has_failed(subject, 600_000)
    assert has_failed(subject, 600_001)
    assert not has_failed(changed(subject, 2, rolled_back_to=1), 600_001)
    assert not has_failed(with_canary("running", "degraded"), 600_001), "it was healthy, so it has no deadline"


def test_grants_and_requirements_of_both_are_due() -> None:
    permission = GrantedPermission(permission="read")
    requirement = Requirement(contract=GREETING, replicas=(PROVIDER,), permissions=(permission,))
    subject = changed(with_canary("running", "unknown"), 2, requirements={"greeting": requirement})
    assert [version.id for version in holding(subject)] == [1, 2]
    assert {number: [ref.name for ref in grants] for number, grants in due_grants(subject).items()} == {7: ["read"]}
    aborted = changed(subject, 2, rolled_back_to=1, status="stopped")
    assert due_grants(aborted) == {}


def test_a_load_adds_a_canary_beside_the_current_version() -> None:
    subject = changed(replica("running"), 1, was_healthy=True)
    request = LoadRequest(id=7, status="validating", image="image", owner="co_z", canary_percent=30)
    candidate = with_version(approved(subject), subject, request)
    assert (candidate.current_version, candidate.canary, candidate.version(2).canary_percent) == (1, 2, 30)


HEALTHY = changed(replica("running"), 1, was_healthy=True)
ONE_AT_A_TIME = changed(replica("running", scalable=False), 1, was_healthy=True)
DISABLED = HEALTHY.model_copy(update={"management": Management(enabled=False)})
ALPHA = HEALTHY.model_copy(update={"identity": constants.ALPHA_IDENTITY})


@pytest.mark.parametrize(
    ("existing", "why"),
    [
        (None, "give the id of the replica to update, or load the image without a canary"),
        (ONE_AT_A_TIME, "can't run at the same time, because it is not scalable"),
        (DISABLED, "replica greeter is disabled: enable it first"),
        (replica("starting"), "version 1 of greeter, the current one, has never been healthy"),
        (ALPHA, "is a part of ReSide"),
    ],
)
def test_a_canary_that_can_not_run_beside_the_current_version_is_refused(existing: Replica | None, why: str) -> None:
    with pytest.raises(LoadRefused, match=why):
        check_canary(approved(HEALTHY), existing, 25)


def test_a_canary_implements_what_the_current_version_does() -> None:
    more = {"greeting": GREETING, "other": "registry.example.org/other.v1"}
    check_canary(approved(HEALTHY, implementations=more), HEALTHY, 25)
    with pytest.raises(LoadRefused, match=f"does not implement {GREETING} as version 1 of greeter does"):
        check_canary(approved(HEALTHY, implementations={}), HEALTHY, 25)
    check_canary(approved(HEALTHY, implementations={}), HEALTHY, None)


@pytest.mark.parametrize("percent", [None, 25])
def test_no_image_is_loaded_while_there_is_a_canary(percent: int | None) -> None:
    subject = with_canary("running", "running")
    for existing in (subject, changed(subject, 2, rolled_back_to=1)):  # also before an abort is complete
        with pytest.raises(LoadRefused, match="has a canary, version 2: promote or abort it first"):
            check_canary(approved(subject), existing, percent)
