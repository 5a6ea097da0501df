"""The progress of an operation that lasts is shown, and counts what the watches see."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from reside.model.kinds import BY_KIND
from reside.model.reports import ApplyProgress, StackReport
from reside.sentinel.guard.cache import ObjectCache
from reside.sentinel.term.progress import Progress

pytestmark = pytest.mark.anyio


def seen(name: str, generation: int, **status: Any) -> dict[str, Any]:
    """Return a live Deployment."""
    meta = {"name": name, "uid": name, "generation": generation, "resourceVersion": f"{generation} {status}"}
    return {"kind": "Deployment", "metadata": meta, "status": status}


async def test_an_operation_that_lasts_tells_how_many_of_its_objects_have_changed() -> None:
    cache, touched = ObjectCache(), asyncio.Queue[str]()
    cache.replace(BY_KIND["Deployment"], [seen("a", 1), seen("b", 1)])
    progress = Progress(cache, touched.put_nowait, pause=0.001)
    keys = ("Deployment/a", "Deployment/b", "Deployment/c")
    with progress.shown("demo", "revision", keys):
        assert progress.of("demo") is None
        assert await touched.get() == "demo"
        shown = progress.of("demo")
        assert shown is not None
        assert shown == ApplyProgress("revision", shown.since, 0, 3)
        cache.note("MODIFIED", seen("b", 1, readyReplicas=1))
        for event, name, generation in (("MODIFIED", "a", 2), ("ADDED", "c", 1), ("MODIFIED", "other", 1)):
            cache.note(event, seen(name, generation))
        assert await touched.get() == "demo"
        shown = replace(shown, changed=2)
        assert progress.of("demo") == shown
        report = StackReport("before", progress=shown).document()
        assert report["progress"] == {"revision": "revision", "since": shown.since, "changed": 2, "objects": 3}
        assert StackReport.parse(report) == StackReport("before")
    assert progress.of("demo") is None
    assert await touched.get() == "demo"
    progress.close()
    cache.note("MODIFIED", seen("a", 3))


async def test_the_report_of_an_operation_that_ends_at_once_is_not_written_for_its_progress() -> None:
    touched: list[str] = []
    progress = Progress(ObjectCache(), touched.append)
    with pytest.raises(KeyError), progress.shown("demo", None, ("Deployment/a",)):
        raise KeyError
    await asyncio.sleep(0)
    assert touched == []
    assert "progress of demo" not in {task.get_name() for task in asyncio.all_tasks()}
