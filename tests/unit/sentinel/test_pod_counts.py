"""Pods are counted by workload from the events of their watch, and the end of a workload is confirmed by a list."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from reside.model.constants import FIELD_MANAGER, MANAGED_BY_LABEL, REPLICA_LABEL, STACK_LABEL, VERSION_LABEL
from reside.model.kinds import EVENT, POD
from reside.sentinel.guard.cache import ObjectCache
from reside.sentinel.guard.pods import FailingProbes, PodCache
from reside.sentinel.term.pod_counts import PodCounts

pytestmark = pytest.mark.anyio

KEY = "Deployment/caller-2"
OURS = {MANAGED_BY_LABEL: FIELD_MANAGER, STACK_LABEL: "caller"}
LABELS = OURS | {REPLICA_LABEL: "caller", VERSION_LABEL: "2"}


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
async def pods() -> PodCache:
    cache = PodCache()
    await cache.load(POD, [pod("a"), pod("b"), pod("ended", phase="Failed"), pod("other", **{VERSION_LABEL: "x"})])
    return cache


async def test_pods_that_have_not_ended_are_counted(pods: PodCache) -> None:
    assert (pods.count(KEY), pods.workloads_of("caller")) == (2, {KEY})
    pods.note("MODIFIED", pod("a", phase="Succeeded"))
    pods.note("DELETED", pod("b"))
    assert (pods.count(KEY), pods.workloads_of("caller")) == (0, set())
    pods.note("ADDED", pod("c", owner="Job"))
    assert pods.count("Job/caller-2") == 1
    await pods.load(POD, [])
    assert pods.workloads_of("caller") == set()


async def test_a_long_list_is_noted_in_several_rounds_of_the_event_loop() -> None:
    """It tells at its end what is gone, and that all pods are listed."""
    cache = PodCache()
    heard: list[str] = []
    cache.listen(heard.append)
    loading = asyncio.create_task(cache.load(POD, [pod(str(number)) for number in range(250)]))
    seen = [len(heard)]
    while not loading.done():
        assert cache.count(KEY) is None
        await asyncio.sleep(0)
        seen.append(len(heard))
    assert [later - before for before, later in pairwise(seen) if later > before] == [100, 100, 50]
    assert cache.count(KEY) == 250
    await cache.load(POD, [])
    assert cache.count(KEY) == 0


async def test_a_probe_of_a_pod_that_is_gone_is_forgotten_when_its_event_arrives_during_the_list() -> None:
    cache = PodCache()
    loading = asyncio.create_task(cache.load(POD, [pod(str(number)) for number in range(250)]))
    await asyncio.sleep(0)
    assert not loading.done()
    cache.note_failing_probe("gone", "Readiness probe failed")
    cache.note_failing_probe("249", "Readiness probe failed")
    await loading
    assert cache._probes == {"249": "Readiness probe failed"}


async def test_the_problem_of_a_workload_is_that_of_any_of_its_pods(pods: PodCache) -> None:
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


@pytest.mark.parametrize(
    ("owner", "labels", "key"),
    [
        ({"kind": "StatefulSet", "name": "jazz"}, {}, "StatefulSet/jazz"),
        ({"kind": "Job", "name": "report"}, {}, "Job/report"),
        ({"kind": "ReplicaSet", "name": "web-5f"}, {"pod-template-hash": "5f"}, "Deployment/web"),
        ({"kind": "ReplicaSet", "name": "web-5f"}, {"pod-template-hash": "6"}, None),
        ({"kind": "DaemonSet", "name": "web"}, {}, None),
    ],
)
async def test_pods_that_another_workload_controls_have_problems_and_are_not_counted(
    owner: dict[str, Any], labels: dict[str, str], key: str | None
) -> None:
    """Their labels are those that the declarer chose; the stack is that which holds the workload."""
    pods, heard = PodCache(lambda workload: f"holder of {workload}"), list[str]()
    pods.listen(heard.append)
    waiting = {"phase": "Pending", "containerStatuses": [{"state": {"waiting": {"reason": "ImagePullBackOff"}}}]}
    meta = {"uid": "a", "labels": labels, "ownerReferences": [owner | {"controller": True}]}
    await pods.load(POD, [{"metadata": meta, "status": waiting}])
    assert heard == ([] if key is None else [f"holder of {key}"])
    if key is not None:
        assert (pods.problem(key), pods.count(key)) == ("ImagePullBackOff", 0)


def probe_event(uid: str, message: str = "Readiness probe failed: HTTP probe failed with statuscode: 503") -> Any:
    times = {"firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:01:00Z"}
    return {"reason": "Unhealthy", "involvedObject": {"kind": "Pod", "uid": uid}, "message": message} | times


FAILS = "Unhealthy: Readiness probe failed: HTTP status 503"
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


async def test_a_failing_probe_is_the_problem_of_its_pod_until_that_is_ready_or_gone(pods: PodCache) -> None:
    heard: list[str] = []
    pods.listen(heard.append)
    probes = FailingProbes(pods)
    for uid in ("a", "a", "b", "unknown"):
        probes.note("MODIFIED", probe_event(uid))
    assert (pods.problem(KEY), heard) == (FAILS, ["caller", "caller"])
    pods.note("MODIFIED", pod("a") | {"status": READY})
    probes.note("MODIFIED", probe_event("a"))
    assert pods.problem(KEY) == FAILS
    probes.note("DELETED", probe_event("b"))
    assert pods.problem(KEY) == FAILS, "Kubernetes keeps events for an hour only"
    ending = pod("b")
    ending["metadata"]["deletionTimestamp"] = "2026-01-01T00:02:00Z"
    pods.note("MODIFIED", ending)
    assert (pods.problem(KEY), pods.count(KEY)) == (None, 2)
    pods.note("MODIFIED", pod("a"))
    assert pods.problem(KEY) is None, "what its probes did before it was ready does not count"


async def test_another_problem_of_a_pod_counts_more_than_its_failing_probe(pods: PodCache) -> None:
    FailingProbes(pods).note("ADDED", probe_event("a"))
    waiting = {"containerStatuses": [{"state": {"waiting": {"reason": "ImagePullBackOff"}}}]}
    pods.note("MODIFIED", pod("a") | {"status": waiting})
    assert pods.problem(KEY) == "ImagePullBackOff"
    pods.note("MODIFIED", pod("a"))
    assert pods.problem(KEY) == FAILS


async def test_events_that_are_listed_before_the_pods_count_for_pods_that_exist() -> None:
    cache = PodCache()
    earlier = probe_event("a", "Startup probe failed: connection refused") | {"lastTimestamp": "2026-01-01T00:00:30Z"}
    FailingProbes(cache).replace(EVENT, [probe_event("a"), earlier, probe_event("gone")])
    await cache.load(POD, [pod("a")])
    assert (cache.problem(KEY), cache.count(KEY)) == (FAILS, 1)
    await cache.load(POD, [pod("gone")])
    assert cache.problem(KEY) is None, "nothing is kept of a pod that did not exist"


def test_the_number_is_not_known_before_the_first_list() -> None:
    assert PodCache().count(KEY) is None


async def test_listeners_hear_of_changed_numbers_only(pods: PodCache) -> None:
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
    stored = SimpleNamespace(keys=lambda: frozenset({KEY}))
    guard: Any = SimpleNamespace(api=api, cache=cache, pods=pods, store=SimpleNamespace(stacks={"caller": stored}))
    return PodCounts(guard)


async def test_a_workload_has_stopped_only_if_a_list_says_so() -> None:
    pods, api = PodCache(), Api(pod("late"))
    counter = counts(api, deployment(0), pods)
    assert await counter.of_stack("caller") == {}
    await pods.load(POD, [])
    assert await counter.of_stack("caller") == {KEY: 1}
    api.left = [pod("ended", phase="Failed")]
    assert await counter.of_stack("caller") == {KEY: 0}
    assert await counter.of_stack("caller") == {KEY: 0}
    assert api.lists == 2, "a confirmed end is not confirmed again"


@pytest.mark.parametrize("live", [deployment(1), deployment(0, generation=2, observed=1)])
async def test_nothing_is_listed_for_a_workload_that_is_not_scaled_down(live: dict[str, Any]) -> None:
    pods, api = PodCache(), Api()
    await pods.load(POD, [])
    assert await counts(api, live, pods).of_stack("caller") == {KEY: 0}
    assert api.lists == 0


async def test_pods_of_a_deleted_workload_are_counted(pods: PodCache) -> None:
    guard: Any = SimpleNamespace(api=Api(), cache=ObjectCache(), pods=pods, store=SimpleNamespace(stacks={}))
    assert await PodCounts(guard).of_stack("caller") == {KEY: 2}


async def test_pods_of_a_workload_that_has_left_its_stack_are_counted_until_it_is_gone() -> None:
    """Without their number, a version that has stopped would not count as stopped any more."""
    pods, cache = PodCache(), ObjectCache()
    await pods.load(POD, [])
    cache.note("ADDED", deployment(0))
    guard: Any = SimpleNamespace(api=Api(), cache=cache, pods=pods, store=SimpleNamespace(stacks={}))
    counter = PodCounts(guard)
    assert await counter.of_stack("caller") == {KEY: 0}
    cache.note("DELETED", deployment(0))
    assert await counter.of_stack("caller") == {}
