"""Pods are counted by workload from the events of their watch, and the end of a workload is confirmed by a list."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from reside.model.constants import REPLICA_LABEL, STACK_LABEL, VERSION_LABEL
from reside.model.kinds import POD
from reside.sentinel.guard.cache import ObjectCache
from reside.sentinel.guard.pods import PodCache
from reside.sentinel.term.pod_counts import PodCounts

pytestmark = pytest.mark.anyio

KEY = "Deployment/caller-2"
LABELS = {STACK_LABEL: "caller", REPLICA_LABEL: "caller", VERSION_LABEL: "2"}


def pod(uid: str, *, phase: str = "Running", owner: str = "ReplicaSet", **labels: str) -> dict[str, Any]:
    owners = [{"kind": owner, "controller": True}]
    found = {"uid": uid, "name": uid, "labels": LABELS | labels, "ownerReferences": owners}
    return {"kind": "Pod", "metadata": found, "status": {"phase": phase}}


def deployment(replicas: int, *, generation: int = 1, observed: int | None = None) -> dict[str, Any]:
    seen = generation if observed is None else observed
    return {
        "kind": "Deployment",
        "metadata": {"name": "caller-2", "generation": generation, "labels": LABELS},
        "spec": {"replicas": replicas, "template": {"metadata": {"labels": LABELS}}},
        "status": {"observedGeneration": seen, "replicas": replicas},
    }


@pytest.fixture
def pods() -> PodCache:
    cache = PodCache()
    cache.replace(POD, [pod("a"), pod("b"), pod("ended", phase="Failed"), pod("other", **{VERSION_LABEL: "x"})])
    return cache


def test_pods_that_have_not_ended_are_counted(pods: PodCache) -> None:
    assert (pods.count(KEY), pods.workloads_of("caller")) == (2, {KEY})
    pods.note("MODIFIED", pod("a", phase="Succeeded"))
    pods.note("DELETED", pod("b"))
    assert (pods.count(KEY), pods.workloads_of("caller")) == (0, set())
    pods.note("ADDED", pod("c", owner="Job"))
    assert pods.count("Job/caller-2") == 1
    pods.replace(POD, [])
    assert pods.workloads_of("caller") == set()


def test_the_problem_of_a_workload_is_that_of_any_of_its_pods(pods: PodCache) -> None:
    heard: list[str] = []
    pods.listen(heard.append)
    waiting = {"phase": "Pending", "containerStatuses": [{"state": {"waiting": {"reason": "ImagePullBackOff"}}}]}
    for uid in ("a", "b"):
        pods.note("MODIFIED", pod(uid) | {"status": waiting})
    assert (pods.problem(KEY), pods.count(KEY), heard) == ("ImagePullBackOff", 2, ["caller", "caller"])
    pods.note("MODIFIED", pod("a") | {"status": waiting})
    assert len(heard) == 2
    pods.note("MODIFIED", pod("a"))
    assert pods.problem(KEY) == "ImagePullBackOff"
    pods.note("DELETED", pod("b"))
    assert pods.problem(KEY) is None


def test_the_number_is_not_known_before_the_first_list() -> None:
    assert PodCache().count(KEY) is None


def test_listeners_hear_of_changed_numbers_only(pods: PodCache) -> None:
    heard: list[str] = []
    unlisten = pods.listen(heard.append)
    pods.note("MODIFIED", pod("a"))
    assert heard == []
    pods.note("DELETED", pod("a"))
    pods.note("DELETED", pod("a"))
    assert heard == ["caller"]
    unlisten()
    pods.note("DELETED", pod("b"))
    assert heard == ["caller"]


class Api:
    """Lists pods, and counts the lists."""

    def __init__(self, *left: dict[str, Any]) -> None:
        self.left = list(left)
        self.lists = 0

    async def list_pods(self, labels: dict[str, str]) -> list[dict[str, Any]]:
        """Return the pods that are left."""
        assert labels == {REPLICA_LABEL: "caller", VERSION_LABEL: "2"}
        self.lists += 1
        return self.left


def counts(api: Api, live: dict[str, Any], pods: PodCache) -> PodCounts:
    cache = ObjectCache()
    cache.note("ADDED", live)
    stored = SimpleNamespace(by_key=lambda: {KEY: live})
    guard: Any = SimpleNamespace(api=api, cache=cache, pods=pods, store=SimpleNamespace(stacks={"caller": stored}))
    return PodCounts(guard)


async def test_a_workload_has_stopped_only_if_a_list_says_so() -> None:
    pods, api = PodCache(), Api(pod("late"))
    counter = counts(api, deployment(0), pods)
    assert await counter.of_stack("caller") == {}
    pods.replace(POD, [])
    assert await counter.of_stack("caller") == {KEY: 1}
    api.left = [pod("ended", phase="Failed")]
    assert await counter.of_stack("caller") == {KEY: 0}
    assert await counter.of_stack("caller") == {KEY: 0}
    assert api.lists == 2, "a confirmed end is not confirmed again"


@pytest.mark.parametrize("live", [deployment(1), deployment(0, generation=2, observed=1)])
async def test_nothing_is_listed_for_a_workload_that_is_not_scaled_down(live: dict[str, Any]) -> None:
    pods, api = PodCache(), Api()
    pods.replace(POD, [])
    assert await counts(api, live, pods).of_stack("caller") == {KEY: 0}
    assert api.lists == 0


async def test_pods_of_a_deleted_workload_are_counted(pods: PodCache) -> None:
    guard: Any = SimpleNamespace(api=Api(), cache=ObjectCache(), pods=pods, store=SimpleNamespace(stacks={}))
    assert await PodCounts(guard).of_stack("caller") == {KEY: 2}
