"""Which object the event of a failed apply is about, and when it is told."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from support.eventually import eventually
from support.sentinel import config_map, service, workload
from unit.sentinel.applier_world import FakeTermContext, applier_on

from reside.model.stacks import DesiredStack
from reside.sentinel.engine import ApplyRejected, EngineUnavailable
from reside.sentinel.guard.repair_events import RepairEvents
from reside.sentinel.term.apply_events import subject, tell_failure

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio
OBJECTS = (config_map("a"), service("web"), workload("Deployment", "web"))
LIVE = {"ConfigMap/a": config_map("a", live="yes"), "ConfigMap/left": config_map("left")}


class Api:
    """Keeps the events that are written."""

    namespace = "test"

    def __init__(self) -> None:
        self.written: list[dict[str, Any]] = []

    async def put_event(self, event: dict[str, Any]) -> None:
        """Keep an event."""
        self.written.append(event)


def about(error: Exception, *objects: dict[str, Any]) -> dict[str, Any] | None:
    return subject(error, objects, LIVE.get)


def test_an_event_is_about_the_object_that_failed_or_else_the_workload() -> None:
    assert about(ApplyRejected("bad", "ConfigMap/a"), *OBJECTS) == LIVE["ConfigMap/a"]
    assert about(ApplyRejected("bad", "Service/web"), *OBJECTS) == OBJECTS[1]
    assert about(ApplyRejected("bad", "ConfigMap/left"), *OBJECTS) == LIVE["ConfigMap/left"]
    assert about(ApplyRejected("bad", "ConfigMap/never"), *OBJECTS) == OBJECTS[2]
    assert about(EngineUnavailable("later"), *OBJECTS) == OBJECTS[2]
    assert about(EngineUnavailable("later"), OBJECTS[1], OBJECTS[0]) == LIVE["ConfigMap/a"]
    assert about(EngineUnavailable("later")) is None


async def test_attempts_that_fail_are_one_warning_without_the_text_of_an_unexpected_error() -> None:
    api = Api()
    events = RepairEvents(api)
    guard: Any = SimpleNamespace(
        cache=SimpleNamespace(get=lambda _: None),
        repairer=SimpleNamespace(findings=SimpleNamespace(events=events)),
    )
    for _ in range(3):
        tell_failure(guard, "demo", OBJECTS, ApplyRejected("spec.ports: too many", "Service/web"))
    tell_failure(guard, "demo", OBJECTS, ValueError("very-secret"))
    writing = asyncio.create_task(events.run())
    try:
        await eventually("the events", lambda: len(api.written) == 2)
    finally:
        writing.cancel()
    found = {event["involvedObject"]["kind"]: event for event in api.written}
    assert (found["Service"]["reason"], found["Service"]["type"], found["Service"]["count"]) == (
        "ApplyFailed",
        "Warning",
        3,
    )
    assert found["Service"]["message"] == "The stack demo is not as declared: Service/web: spec.ports: too many"
    assert "uid" not in found["Service"]["involvedObject"]
    assert "very-secret" not in str(api.written)


@pytest.mark.parametrize("is_reported", [True, False])
async def test_a_failed_apply_is_told_when_it_is_reported(tmp_path: Path, is_reported: bool) -> None:
    """A transient error is reported after several attempts (`Reporter.fail`)."""
    told: list[Any] = []
    context = FakeTermContext(tmp_path)
    context.guard.repairer.findings = SimpleNamespace(events=SimpleNamespace(tell=lambda *event: told.append(event)))
    context.declared["demo"] = DesiredStack("demo", "co_zowner", OBJECTS)
    context.interrupted, context.may_end = ["demo"], asyncio.Event()
    context.may_end.set()
    both = applier_on(context)
    reporter: Any = both.applier._reporter
    reporter.fail = lambda *_: is_reported
    with suppress(EngineUnavailable):
        await both.handle("demo")
    assert [event[1] for event in told] == (["ApplyFailed"] if is_reported else [])


async def test_the_name_of_an_event_is_valid_whatever_the_object_is_called() -> None:
    api = Api()
    events = RepairEvents(api)
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "system:x.Y:"}}
    events.tell(role, "ApplyFailed", "x")
    writing = asyncio.create_task(events.run())
    try:
        await eventually("the event", lambda: api.written)
    finally:
        writing.cancel()
    assert api.written[0]["metadata"]["name"].startswith("system-x.")
