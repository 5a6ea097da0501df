"""A scalable replica changes its version without a failed call."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import anyio
import pytest
from e2e.calls import steady_calls
from support.eventually import eventually

if TYPE_CHECKING:
    from support.platform import Platform

pytestmark = pytest.mark.timeout(1200)


def test_no_call_fails_while_the_greeter_changes_version(platform: Platform) -> None:
    image = platform.build("examples/replicas/greeter-v2", "v2")
    if "caller" not in platform.replicas():
        platform.load(platform.build("examples/replicas/caller", "v1"))

    greeter = str(platform.replicas()["greeter"]["id"])

    def versions() -> set[str]:
        return {pod["metadata"]["labels"]["reside.io/version"] for pod in platform.objects_of("greeter", "Pod")}

    async def scenario() -> list[str]:
        async with steady_calls(platform, a_second=20) as outcome:
            await anyio.to_thread.run_sync(platform.load, image, "--replica-id", greeter)
            await eventually(
                "the end of version 1",
                partial(anyio.to_thread.run_sync, versions),
                lambda found: found == {"2"},
                within=90,
            )
        return outcome.failures + ([] if outcome.versions == {1, 2} else [f"answered: {outcome.versions}"])

    assert anyio.run(scenario) == []
