"""A Sentinel with an empty volume starts its engine at once, because every stack must be applied; others do not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.eventually import eventually
from support.sentinel import config_map

from reside.sentinel.app import Sentinel, pulumi_engine

if TYPE_CHECKING:
    from integration.sentinel.setup import Setup

    from reside.sentinel.engine import StackEngine
    from reside.sentinel.settings import SentinelSettings

pytestmark = pytest.mark.anyio


async def test_only_an_engine_with_an_empty_volume_starts_before_it_is_needed(setup: Setup) -> None:
    started: list[StackEngine] = []

    def make_engine(settings: SentinelSettings) -> StackEngine:
        engine = pulumi_engine(settings)
        start = engine.start

        async def noted() -> None:
            await start()
            started.append(engine)

        engine.start = noted  # type: ignore[method-assign]  # noted once it has started
        return engine

    async with setup.running(lambda settings: Sentinel(settings, make_engine)):
        await eventually("an engine that has started", lambda: started, within=60)
        alpha = await setup.alpha()
        await alpha.applied(await alpha.declare("demo", config_map("a", x="1")))
    async with setup.running(lambda settings: Sentinel(settings, make_engine)):
        await alpha.applied(await alpha.declare("demo", config_map("a", x="2")))
    assert len(started) == 1
