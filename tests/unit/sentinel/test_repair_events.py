"""Events about repairs are bounded: one for each object and reason, written after a pause, dropped if refused."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from support.eventually import eventually

from reside.sentinel.errors import ClusterRefused, ClusterUnavailable
from reside.sentinel.guard import repair_events
from reside.sentinel.guard.repair_events import RepairEvents

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = pytest.mark.anyio


class Api:
    """Keeps the events that are written."""

    namespace = "test"

    def __init__(self) -> None:
        self.written: list[dict[str, Any]] = []
        self.errors: list[Exception] = []

    async def put_event(self, event: dict[str, Any]) -> None:
        """Keep an event, or fail."""
        if self.errors:
            raise self.errors.pop()
        self.written.append(event)


def live(name: str, uid: str = "u") -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "uid": uid}}


@asynccontextmanager
async def running() -> AsyncIterator[tuple[Api, RepairEvents]]:
    api = Api()
    events = RepairEvents(api)
    task = asyncio.create_task(events.run())
    try:
        yield api, events
    finally:
        task.cancel()


async def test_repairs_of_one_object_are_one_event_that_is_written_after_a_pause() -> None:
    async with running() as (api, events):
        for number in range(100):
            events.tell(live("a"), "Reverted", f"change {number}")
        await eventually("the event", lambda: api.written)
        (event,) = api.written
        assert (event["count"], event["message"], event["type"]) == (100, "change 99", "Normal")
        assert event["involvedObject"] == {"namespace": "test", "name": "a", "uid": "u"} | {
            "apiVersion": "v1",
            "kind": "ConfigMap",
        }
        events.tell(live("a"), "Reverted", "one more")
        events.tell(live("a"), "Fight", "a fight")
        await eventually("the other event", lambda: len(api.written) == 2)
        assert (api.written[1]["reason"], api.written[1]["type"]) == ("Fight", "Warning")
        assert api.written[1]["metadata"]["name"] != event["metadata"]["name"]
        assert events.queue.statistics().waiting == 1, "it is written later"


async def test_many_objects_get_their_events_slowly_and_the_oldest_ones_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repair_events, "_MOST", 60)
    async with running() as (api, events):
        for number in range(1000):
            events.tell(live(f"o{number}", str(number)), "Restored", "created")
        await eventually("some events", lambda: len(api.written) >= 1)
        assert len(events._recorded) == 60
        for _ in range(1000):
            await asyncio.sleep(0)
        assert len(api.written) <= 51


async def test_an_event_that_is_refused_is_dropped_and_one_that_is_not_delivered_is_tried_again() -> None:
    async with running() as (api, events):
        api.errors = [ClusterRefused("no right to write events", 403)]
        events.tell(live("a"), "Reverted", "x")
        await eventually("the refusal", lambda: not api.errors)
        await events.queue.wait_idle()
        assert api.written == []
        api.errors = [ClusterUnavailable("nobody answers")]
        events.tell(live("b"), "Reverted", "x")
        await eventually("the event", lambda: api.written)


async def test_a_message_and_a_name_have_a_limited_length() -> None:
    async with running() as (api, events):
        events.tell(live("n" * 253), "Reverted", "x" * 9999)
        await eventually("the event", lambda: api.written)
        assert len(api.written[0]["message"]) == 1000
        assert len(api.written[0]["metadata"]["name"]) <= 253
