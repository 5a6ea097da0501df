"""The metrics of a term: its queues, the wait for a lane, the phases of operations, changed objects, memory."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from prometheus_client import REGISTRY

from reside.common.backoff import DEFAULT
from reside.common.workqueue import WorkQueue
from reside.model.previews import ObjectChange
from reside.sentinel.term.metrics import count, phase, shown

pytestmark = pytest.mark.anyio


def value(name: str, **labels: Any) -> float:
    return REGISTRY.get_sample_value(f"reside_sentinel_{name}", labels) or 0.0


async def test_a_term_shows_its_queues_and_how_long_keys_wait_for_a_lane() -> None:
    started, go_on = asyncio.Event(), asyncio.Event()

    async def handle(key: str) -> None:
        if key == "one":
            started.set()
            await go_on.wait()

    queue = WorkQueue("watched", handle, workers=1, backoff=DEFAULT)
    assert value("leader") == 0
    with shown(queue):
        assert value("leader") == 1
        running = asyncio.create_task(queue.run())
        queue.add("one")
        await started.wait()
        queue.add("two")
        assert value("queue_keys", queue="watched", state="running") == 1
        assert value("queue_keys", queue="watched", state="waiting") == 1
        assert value("queue_age_seconds", queue="watched") > 0
        assert value("lane_wait_seconds_count", queue="watched") == 1
        go_on.set()
        await queue.wait_idle()
        assert value("lane_wait_seconds_count", queue="watched") == 2
        assert value("lane_wait_seconds_sum", queue="watched") > 0
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert value("queue_keys", queue="watched", state="running") == 0
    assert value("leader") == 0


async def test_a_phase_is_measured_also_if_it_fails() -> None:
    before = value("operation_phase_seconds_count", operation="preview", phase="engine")
    with pytest.raises(KeyError), phase("preview", "engine"):
        raise KeyError
    assert value("operation_phase_seconds_count", operation="preview", phase="engine") == before + 1


def test_changed_objects_are_counted_by_kind_and_action() -> None:
    before = value("objects_total", kind="Service", action="replace")
    count([ObjectChange("Service/a", "replace"), ObjectChange("Service/b", "replace"), ObjectChange("Job/a", "delete")])
    assert value("objects_total", kind="Service", action="replace") == before + 2


def test_the_memory_of_child_processes_is_that_of_the_engine() -> None:
    assert value("engine_memory_bytes") >= 0
