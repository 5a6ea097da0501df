"""Which versions run: a scalable replica is updated without a gap, a non-scalable one never runs twice."""

from __future__ import annotations

from typing import get_args

from hypothesis import given
from hypothesis import strategies as st
from unit.alpha.entities import replica

from reside.alpha.stacks.rollout import GONE, rollout
from reside.model.entities import Management
from reside.model.status import VersionStatus

STATUSES: list[VersionStatus] = list(get_args(VersionStatus))


def test_the_first_version_runs_immediately_scalable_or_not() -> None:
    assert rollout(replica("unknown")) == rollout(replica("unknown", scalable=False)) == {1: True}


def test_scalable_keeps_the_old_version_until_the_new_one_runs() -> None:
    assert rollout(replica("running", "unknown")) == {1: True, 2: True}
    assert rollout(replica("running-outdated", "starting")) == {1: True, 2: True}
    assert rollout(replica("running-outdated", "degraded")) == {1: True, 2: True}
    assert rollout(replica("running-outdated", "error")) == {1: True, 2: True}
    assert rollout(replica("running-outdated", "running")) == {1: False, 2: True}
    assert rollout(replica("stopping", "running")) == {1: False, 2: True}
    assert rollout(replica("stopped", "running")) == {2: True}


def test_an_old_version_that_began_to_stop_is_not_started_again() -> None:
    assert rollout(replica("stopping", "degraded")) == {1: False, 2: True}


def test_non_scalable_stops_the_old_version_first() -> None:
    assert rollout(replica("running", "unknown", scalable=False)) == {1: False, 2: False}
    assert rollout(replica("stopping", "stopped", scalable=False)) == {1: False, 2: False}
    assert rollout(replica("stopped", "stopped", scalable=False)) == {2: True}


def test_a_failed_old_version_is_removed_and_a_non_scalable_one_waits_for_that() -> None:
    assert rollout(replica("error", "unknown", scalable=False)) == {2: False}
    assert rollout(replica("stopped", "unknown", scalable=False)) == {2: True}
    assert rollout(replica("error", "running")) == {2: True}


def test_disabled_means_nothing_runs() -> None:
    off = Management(enabled=False)
    assert rollout(replica("running-outdated", "running", management=off)) == {1: False, 2: False}
    assert rollout(replica("stopped", "stopped", management=off)) == {2: False}


def test_rolling_back_is_the_same_with_another_current_version() -> None:
    assert rollout(replica("running-outdated", "starting", current=1)) == {1: True, 2: True}
    assert rollout(replica("running", "starting", current=1)) == {1: True, 2: False}


def test_a_replica_without_a_current_version_has_no_workload() -> None:
    assert rollout(replica()) == {}


@given(st.lists(st.sampled_from(STATUSES), min_size=1, max_size=5), st.data())
def test_a_non_scalable_replica_never_runs_two_versions(statuses: list[VersionStatus], data: st.DataObject) -> None:
    current = data.draw(st.integers(1, len(statuses)))
    plan = rollout(replica(*statuses, current=current, scalable=False))
    assert current in plan
    assert sum(plan.values()) <= 1
    alive = [n for n, status in enumerate(statuses, 1) if n != current and status not in GONE]
    assert plan[current] is not bool(alive)


@given(st.lists(st.sampled_from(STATUSES), min_size=2, max_size=5), st.data())
def test_the_current_version_and_the_canary_always_run(statuses: list[VersionStatus], data: st.DataObject) -> None:
    canary = data.draw(st.integers(2, len(statuses)))
    current = data.draw(st.integers(1, canary - 1))
    with_canary = replica(*statuses, current=current, canary=canary)
    plan = rollout(with_canary)
    assert plan[current] is plan[canary] is True
    others = {number: runs for number, runs in plan.items() if number != canary}
    without = rollout(with_canary.model_copy(update={"canary": None}))
    assert others == {number: runs for number, runs in without.items() if number != canary}


@given(st.lists(st.sampled_from(STATUSES), min_size=1, max_size=5), st.data())
def test_a_scalable_replica_keeps_old_versions_until_the_current_one_serves(
    statuses: list[VersionStatus], data: st.DataObject
) -> None:
    current = data.draw(st.integers(1, len(statuses)))
    plan = rollout(replica(*statuses, current=current))
    assert plan[current] is True
    if statuses[current - 1] not in ("running", "completed"):
        assert all(plan[n] for n, status in enumerate(statuses, 1) if status in ("running", "running-outdated"))
