"""A scalable replica changes its version without a failed call, with and without a canary."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from e2e.administrator import credentials
from e2e.calls import call_greeter, steady_calls
from support.eventually import eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.platform import Platform

pytestmark = pytest.mark.timeout(1200)


def in_thread(do: Callable[..., Any], *args: str) -> Any:
    """Run what blocks in a thread, so that the stream of calls goes on."""
    return anyio.to_thread.run_sync(partial(do, *args))


def pods(platform: Platform) -> list[str]:
    """Return the version of each pod of the greeter, sorted; terminating pods count."""
    return sorted(pod["metadata"]["labels"]["reside.io/version"] for pod in platform.objects_of("greeter", "Pod"))


def load_caller(platform: Platform) -> None:
    """Load the replica with whose account the greeter is called."""
    if "caller" not in platform.replicas():
        platform.load(platform.build("examples/replicas/caller", "v1"))


def other_image(platform: Platform) -> str:
    """Return the image of the greeter that runs not now; its calls tell which one it is."""
    answer = anyio.run(call_greeter, platform, credentials(platform, "caller"))["version"]
    folder = {1: "examples/replicas/greeter-v2", 2: "examples/replicas/greeter"}[answer]
    return platform.build(folder, f"v{3 - answer}")


def test_no_call_fails_while_the_greeter_changes_version(platform: Platform) -> None:
    load_caller(platform)
    row = platform.replicas()["greeter"]
    image, new = other_image(platform), str(row["version"] + 1)

    async def scenario() -> list[str]:
        async with steady_calls(platform, a_second=20) as outcome:
            await in_thread(platform.load, image, "--replica-id", str(row["id"]))
            await eventually(
                "the end of the old version",
                lambda: in_thread(pods, platform),
                lambda found: set(found) == {new},
                within=180,
            )
        return outcome.failures + ([] if outcome.versions == {1, 2} else [f"answered: {outcome.versions}"])

    assert anyio.run(scenario) == []


@pytest.fixture
def two_pods(platform: Platform) -> Iterator[None]:
    """Run the greeter with two pods."""
    platform.reside("replica", "scale", "greeter", "2")
    yield
    platform.reside("replica", "scale", "greeter", "1")


@pytest.mark.usefixtures("two_pods")
def test_no_call_fails_while_a_canary_is_aborted_and_another_one_promoted(platform: Platform) -> None:
    load_caller(platform)
    row = platform.replicas()["greeter"]
    current = row["version"]
    canary = (other_image(platform), "--replica-id", str(row["id"]), "--canary", "50")

    async def have(*versions: int) -> None:
        wanted = sorted(str(version) for version in versions)
        await eventually(f"pods {wanted}", lambda: in_thread(pods, platform), lambda found: found == wanted, within=180)

    async def scenario() -> list[str]:
        async with steady_calls(platform, a_second=50) as outcome:
            await have(current, current)
            await in_thread(platform.load, *canary)
            await have(current, current + 1)
            await in_thread(platform.reside, "replica", "canary", "abort", "greeter")
            await have(current, current)
            seen = set(outcome.versions)
            await in_thread(platform.load, *canary)
            await have(current, current + 2)
            await in_thread(platform.reside, "replica", "canary", "promote", "greeter")
            await have(current + 2, current + 2)
        return outcome.failures + ([] if seen == {1, 2} else [f"answered before the abort: {seen}"])

    assert anyio.run(scenario) == []
    found = platform.replicas()["greeter"]
    assert (found["version"], found["canary"]) == (current + 2, None)
    assert {v["id"]: v["status"] for v in found["versions"]}[current + 1] == "stopped"
