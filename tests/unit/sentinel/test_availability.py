"""The end of an outage of the Kubernetes API is noticed, and what failed by the outage is tried at once."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from support.eventually import eventually
from support.sentinel_fleet import Fleet

from reside.common.backoff import Backoff
from reside.jazz import Credentials, Node
from reside.jazz.server import SyncServer
from reside.sentinel.errors import ClusterRefused, ClusterUnavailable
from reside.sentinel.guard import availability, repairer
from reside.sentinel.guard.availability import Availability
from reside.sentinel.term import term

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from reside.model.errors import ResideError

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(availability, "CONNECT_BACKOFF", Backoff(first=0.0, longest=0.0))


class Api:
    """An API server that is away for some requests."""

    def __init__(self, *errors: ResideError) -> None:
        self.errors = list(errors)
        self.requests = 0

    async def get(self, _key: str) -> None:
        """Fail while there are errors."""
        self.requests += 1
        if self.errors:
            raise self.errors.pop(0)


@asynccontextmanager
async def watched(api: Api) -> AsyncIterator[tuple[Availability, list[str]]]:
    found, told = Availability(api), list[str]()  # type: ignore[arg-type]  # only what a look needs
    unlisten = found.listen(lambda: told.append("back"))
    task = asyncio.create_task(found.run())
    try:
        yield found, told
    finally:
        task.cancel()
        unlisten()


async def test_nothing_is_requested_without_a_doubt() -> None:
    api = Api()
    async with watched(api):
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert api.requests == 0


@pytest.mark.parametrize("error", [ClusterUnavailable("nobody answers"), ClusterRefused("it has no roles yet", 403)])
async def test_the_return_is_told_once_after_an_outage(error: ResideError) -> None:
    api = Api(error, error, error)
    async with watched(api) as (found, told):
        found.doubt()
        await eventually("the return", lambda: told)
        assert (told, api.requests) == (["back"], 4)
        found.doubt()
        await eventually("another look", lambda: api.requests == 5)
        assert told == ["back"]


async def test_an_api_that_answers_has_not_been_away() -> None:
    """Else an error that has another cause would be retried without any pause."""
    api = Api()
    async with watched(api) as (found, told):
        found.doubt()
        await eventually("the look", lambda: api.requests == 1)
        await asyncio.sleep(0)
    assert told == []


async def test_an_apply_and_a_repair_wait_for_no_pause_after_an_outage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name in ((term, "APPLY_BACKOFF"), (repairer, "REPAIR_BACKOFF")):
        monkeypatch.setattr(module, name, Backoff(first=3600.0, longest=3600.0))
    async with SyncServer() as server, Node(server.url, Credentials.generate()) as node:
        await node.register("sentinel")
        fleet = Fleet(node, tmp_path)
        fleet.declare("old")
        async with fleet.running():
            fleet.api.away = True
            fleet.declare("new")
            fleet.api.lose("ConfigMap/old")
            queues = (fleet.term._stacks, fleet.guard.repairer._queue)
            await eventually("the failures", lambda: [each.statistics().failing for each in queues] == [1, 1])
            fleet.api.away = False
            await eventually("both", lambda: {"ConfigMap/old", "ConfigMap/new"} <= fleet.api.live.keys())
