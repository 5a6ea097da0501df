"""Watches resume from where they ended. Lists are counted, because each costs as much as its kind has objects."""

from __future__ import annotations

import asyncio
from collections import deque
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from weakref import ref

import pytest
from support.eventually import eventually

from reside.common.backoff import Backoff
from reside.model.kinds import BY_KIND
from reside.sentinel.errors import ClusterRefused, ClusterUnavailable
from reside.sentinel.guard import watch as watching
from reside.sentinel.guard.cache import ObjectCache
from reside.sentinel.guard.watch import follow

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

pytestmark = pytest.mark.anyio
KIND = BY_KIND["ConfigMap"]


def seen(name: str, version: str) -> dict[str, Any]:
    return {"kind": "ConfigMap", "metadata": {"name": name, "uid": name, "resourceVersion": version}}


def bookmark(version: str) -> tuple[str, dict[str, Any]]:
    return "BOOKMARK", {"kind": "ConfigMap", "metadata": {"resourceVersion": version}}


class Listed(list[Any]):
    """Objects of a list; unlike of a plain list, it can be seen whether anybody still has it."""


class Script:
    """An API server whose watches are scripted: events, and then an end, an error, or silence (None)."""

    def __init__(self, *watches: list[Any]) -> None:
        self.watches = deque(watches)
        self.requests: list[str] = []
        self.done = asyncio.Event()

    async def list_all(self, _: Any) -> tuple[list[dict[str, Any]], str]:
        """Return one object."""
        self.requests.append("list")
        objects = Listed([seen("a", "10")])
        self.listed = ref(objects)
        return objects, "10"

    async def watch(self, _: Any, version: str) -> AsyncIterator[Any]:
        """Yield what the script says."""
        self.requests.append(f"watch from {version}")
        if not self.watches:
            self.done.set()
            await asyncio.Event().wait()
        for each in self.watches.popleft():
            if isinstance(each, Exception):
                raise each
            if each is None:
                await asyncio.Event().wait()
            yield each


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(watching, "CONNECT_BACKOFF", Backoff(first=0.0, longest=0.0))
    return


async def play(*watches: list[Any]) -> tuple[list[str], ObjectCache]:
    """Return the requests until the script has ended, and the cache."""
    script, cache = Script(*watches), ObjectCache()
    task = asyncio.create_task(follow(script, cache, KIND))  # type: ignore[arg-type] # only what a watch needs
    async with asyncio.timeout(60):
        await script.done.wait()
    task.cancel()
    return script.requests, cache


@pytest.mark.parametrize("status", [403, 404])
async def test_an_optional_kind_that_is_not_served_has_no_objects_until_it_is(
    status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, cache, script = BY_KIND["HTTPRoute"], ObjectCache(), Script([bookmark("20")])
    failures = watching.WATCH_FAILURES.labels(kind.kind)
    before, looks = failures._value.get(), 0  # type: ignore[attr-defined]
    served = script.list_all

    async def list_all(of: Any) -> tuple[list[dict[str, Any]], str]:
        nonlocal looks
        looks += 1
        if looks < 3:
            raise ClusterRefused("it is absent", status)
        assert cache.is_listed("HTTPRoute/a")
        return await served(of)

    monkeypatch.setattr(watching, "LOOK_AGAIN_S", 0.0)
    monkeypatch.setattr(script, "list_all", list_all)
    task = asyncio.create_task(follow(script, cache, kind))  # type: ignore[arg-type] # as in `play`
    async with asyncio.timeout(60):
        await script.done.wait()
    task.cancel()
    assert (looks, failures._value.get()) == (3, before)  # type: ignore[attr-defined]


async def test_a_watch_resumes_from_the_last_event_or_bookmark_without_a_list() -> None:
    last = watching.LAST_EVENT.labels(KIND.kind)
    last.set(0)
    requests, cache = await play(
        [bookmark("20")], [("ADDED", seen("b", "21")), ("DELETED", seen("a", "22"))], [bookmark("30"), bookmark("31")]
    )
    assert requests == ["list", "watch from 10", "watch from 20", "watch from 22", "watch from 31"]
    assert cache.objects.keys() == {"ConfigMap/b"}
    assert last._value.get() > 0


async def test_what_was_listed_is_not_kept_while_the_watch_runs() -> None:
    """The cache keeps what it needs of the objects; all of them, with their managed fields, take several times that."""
    script = Script([bookmark("20"), None])
    task = asyncio.create_task(follow(script, ObjectCache(), KIND))  # type: ignore[arg-type] # as in `play`
    await eventually("the watch runs", lambda: script.requests, lambda sent: sent == ["list", "watch from 10"])
    assert script.listed() is None
    task.cancel()


async def test_a_silent_connection_is_replaced_without_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    assert watching.QUIET_S <= 90
    monkeypatch.setattr(watching, "QUIET_S", 0.01)
    failures = watching.WATCH_FAILURES.labels(KIND.kind)
    before = failures._value.get()
    requests, _ = await play([bookmark("20"), None])
    assert requests[:3] == ["list", "watch from 10", "watch from 20"]
    assert requests.count("list") == 1
    assert failures._value.get() > before


async def test_a_failed_watch_is_resumed_once_and_then_listed() -> None:
    """The version itself may be the cause: that of an API server whose data was restored is in the past."""
    away = ClusterUnavailable("nobody answers")
    failures = watching.WATCH_FAILURES.labels(KIND.kind)
    before = failures._value.get()
    requests, _ = await play([bookmark("20"), away], [bookmark("21"), away], [away], [bookmark("11")])
    assert failures._value.get() == before + 3
    assert requests == [
        "list",
        "watch from 10",
        "watch from 20",
        "watch from 21",
        "list",
        "watch from 10",
        "watch from 11",
    ]


@pytest.mark.parametrize("status", [410, 400])
async def test_a_version_that_the_api_server_does_not_accept_is_listed_at_once(status: int) -> None:
    failures = watching.WATCH_FAILURES.labels(KIND.kind)
    before = failures._value.get()
    requests, _ = await play([bookmark("20")], [ClusterRefused("too old", status)])
    assert requests == ["list", "watch from 10", "watch from 20", "list", "watch from 10"]
    assert failures._value.get() == before + (0 if status == HTTPStatus.GONE else 1)  # 410 is the API server's request


async def test_refused_credentials_end_the_watch() -> None:
    with pytest.raises(ClusterRefused):
        await follow(Script([ClusterRefused("who are you", 401)]), ObjectCache(), KIND)  # type: ignore[arg-type]


async def test_other_tasks_run_while_many_events_of_a_watch_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "SLICE_S", 0.0)
    script = Script([("ADDED", seen(str(n), str(n))) for n in range(20, 60)])
    cache, seen_by_other = ObjectCache(), set()

    async def other() -> None:
        while not script.done.is_set():
            seen_by_other.add(sum(cache.get(f"ConfigMap/{n}") is not None for n in range(20, 60)))
            await asyncio.sleep(0)

    task = asyncio.create_task(follow(script, cache, KIND))  # type: ignore[arg-type] # as in `play`
    async with asyncio.timeout(60):
        await other()
    task.cancel()
    assert len(seen_by_other) > 20
