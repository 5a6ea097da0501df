"""A version that does not become healthy in time fails, and is rolled back if its load request says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError
from unit.alpha.entities import replica

from reside.alpha.health import NOT_READY, next_deadline_s, roll_back_target, with_health
from reside.model.entities import HealthPolicy

if TYPE_CHECKING:
    from reside.model.entities import Replica, ReplicaVersion
    from reside.model.status import VersionStatus

DEADLINE_MS = 600_000


def judged(version: ReplicaVersion, status: VersionStatus, now_ms: int, **more: Any) -> ReplicaVersion:
    """Return a version with its health; by default it should run, and its workload is reported."""
    default = {"problem": None, "should_run": True, "is_tried": True}
    return with_health(version, status, now_ms=now_ms, **(default | more))


def new() -> ReplicaVersion:
    return replica("unknown").version(1)


def test_the_deadline_counts_from_the_first_report() -> None:
    assert judged(new(), "starting", 1, is_tried=False).starting_since is None
    seen = judged(new(), "starting", 1)
    assert (seen.starting_since, seen.status, seen.reason) == (1, "starting", None)
    assert judged(seen, "starting", DEADLINE_MS).status == "starting"


def test_a_version_that_misses_it_has_failed_with_the_reason_of_kubernetes() -> None:
    seen = judged(new(), "starting", 1)
    for problem, said in (("ImagePullBackOff: not found", "ImagePullBackOff: not found"), (None, NOT_READY)):
        failed = judged(seen, "starting", DEADLINE_MS + 1, problem=problem)
        assert (failed.status, failed.reason) == ("error", f"it was not healthy within 600 s: {said}")


def test_a_failed_version_may_still_become_healthy() -> None:
    failed = judged(judged(new(), "starting", 1), "starting", DEADLINE_MS + 1)
    healed = judged(failed, "running", DEADLINE_MS + 2)
    assert (healed.status, healed.reason, healed.was_healthy, healed.starting_since) == ("running", None, True, None)


def test_a_version_that_was_healthy_has_no_deadline_any_more() -> None:
    healed = judged(new(), "running", 1)
    later = judged(healed, "starting", DEADLINE_MS * 2, problem="CrashLoopBackOff: exit code 1")
    assert (later.status, later.reason, later.starting_since) == ("starting", "CrashLoopBackOff: exit code 1", None)


def test_a_version_that_is_first_seen_ready_when_it_is_replaced_already_was_healthy() -> None:
    assert judged(new(), "running-outdated", 1).was_healthy


def test_a_version_that_should_not_run_has_no_deadline() -> None:
    seen = judged(new(), "starting", 1)
    stopped = judged(seen, "stopped", 2, should_run=False, problem="irrelevant")
    assert (stopped.starting_since, stopped.reason) == (None, None)
    assert judged(stopped, "starting", DEADLINE_MS * 3).status == "starting", "enabled again, it has its full time"


def test_the_next_deadline_is_that_of_the_first_version_to_miss_it() -> None:
    subject = replica("starting", "starting")
    versions = [subject.version(1).model_copy(update={"starting_since": 5_000}), subject.version(2)]
    subject = subject.model_copy(update={"versions": tuple(versions)})
    assert next_deadline_s(subject, 6_000) == 599
    assert next_deadline_s(subject, DEADLINE_MS + 5_000) is None, "nothing happens after it"
    assert next_deadline_s(replica("running"), 0) is None


def failed(on_failure: str = "roll-back", **first: Any) -> Replica:
    """Return a replica whose second version has missed its deadline."""
    subject = replica("running-outdated", "error")
    health = HealthPolicy.model_validate({"on_failure": on_failure})
    second = subject.version(2).model_copy(update={"starting_since": 1, "health": health})
    return subject.model_copy(
        update={"versions": (subject.version(1).model_copy(update={"was_healthy": True} | first), second)}
    )


def test_the_last_healthy_version_replaces_a_failed_one() -> None:
    assert roll_back_target(failed(), DEADLINE_MS + 1) == 1


def test_a_healthy_version_that_is_not_active_any_more_replaces_a_failed_one() -> None:
    subject = failed(was_healthy=False).model_copy(update={"last_healthy_version": 1})
    assert roll_back_target(subject, DEADLINE_MS + 1) == 1


@pytest.mark.parametrize(
    ("subject", "now_ms"),
    [
        (failed("stay"), DEADLINE_MS + 1),
        (failed(), DEADLINE_MS),  # an error before the deadline may be transient
        (failed(was_healthy=False), DEADLINE_MS + 1),
        (failed(rolled_back_to=0), DEADLINE_MS + 1),
        (replica("running"), DEADLINE_MS),
        (replica(), DEADLINE_MS),
    ],
)
def test_otherwise_the_version_stays(subject: Replica, now_ms: int) -> None:
    assert roll_back_target(subject, now_ms) is None


def test_a_roll_back_that_was_begun_is_finished() -> None:
    marked = failed().version(2).model_copy(update={"rolled_back_to": 1, "status": "starting", "starting_since": None})
    subject = failed().model_copy(update={"versions": (failed().version(1), marked)})
    assert roll_back_target(subject, 0) == 1


def test_a_rolled_back_version_keeps_its_reason() -> None:
    version = new().model_copy(update={"rolled_back_to": 1, "reason": "it failed", "status": "error"})
    seen = judged(version, "stopped", 5, should_run=False)
    assert (seen.status, seen.reason) == ("stopped", "it failed")


@pytest.mark.parametrize(
    "members", [{"deadline_s": 0}, {"deadline_s": 90_000}, {"min_ready_s": 600}, {"on_failure": "panic"}]
)
def test_a_policy_that_can_not_be_met_is_refused(members: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        HealthPolicy.model_validate(members)
