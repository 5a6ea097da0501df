"""The metrics of Alpha: leadership, queues, requests by status."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from prometheus_client import REGISTRY

from reside.alpha.metrics import leading
from reside.common.backoff import DEFAULT
from reside.common.workqueue import WorkQueue

pytestmark = pytest.mark.anyio


def value(name: str, **labels: Any) -> float | None:
    return REGISTRY.get_sample_value(f"reside_alpha_{name}", labels)


async def test_a_leader_shows_its_queue_and_another_process_shows_zeros() -> None:
    started, go_on = asyncio.Event(), asyncio.Event()

    async def handle(_key: str) -> None:
        started.set()
        await go_on.wait()

    queue = WorkQueue("shown", handle, workers=1, backoff=DEFAULT)
    with leading(shown=queue):
        running = asyncio.create_task(queue.run())
        queue.add("one")
        await started.wait()
        queue.add("two")
        assert value("leader") == 1
        assert (
            value("queue_keys", queue="shown", state="running"),
            value("queue_keys", queue="shown", state="waiting"),
        ) == (1, 1)
        assert (value("queue_age_seconds", queue="shown") or 0) > 0
    assert value("leader") == 0
    assert value("queue_keys", queue="shown", state="running") == 0
    assert value("queue_age_seconds", queue="shown") == 0
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def test_requests_are_counted_by_their_last_status_until_they_are_finished() -> None:
    with leading() as requests:
        for number in (1, 2):
            requests.note(number, "validating")
        requests.note(1, "requires-approval")
        assert (value("requests", status="validating"), value("requests", status="requires-approval")) == (1, 1)
        requests.note(2, None)
        requests.note(2, None)
        assert (value("requests", status="validating"), value("requests", status="requires-approval")) == (0, 1)
    assert value("requests", status="requires-approval") == 0
