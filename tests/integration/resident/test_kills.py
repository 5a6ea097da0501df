"""An engine or provider is killed with SIGKILL at any point: the client gets an error, the next operation converges."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import pytest
from integration.resident.programs import config_map, kubernetes
from integration.resident.sides import resident_side
from pulumi import ResourceOptions
from support.eventually import eventually_sync

from reside.resident import EngineDied

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from integration.resident.sides import Program, Side, Sides
    from pulumi.automation import Stack
    from pulumi.automation.events import EngineEvent

Act: TypeAlias = "Callable[[], None]"
ALL = 10
VICTIMS = ("engine", "provider")
PROVIDER_ENDED = re.compile(
    r"pulumi-resource-kubernetes exited prematurely|the provider kubernetes \(process \d+\) ended"
)


@pytest.fixture(scope="module")
def side(sides: Sides, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Side]:
    with resident_side(sides.resident.info, tmp_path_factory.mktemp("kills")) as made:
        yield made


class Killed(NamedTuple):
    """A stack, and the outcome of the operation on it in which something was killed."""

    stack: Stack
    outcome: Any


def maps(side: Side, stack: str, count: int, value: str) -> Program:
    """Return a program of so many ConfigMaps."""

    def run() -> None:
        use = ResourceOptions(provider=kubernetes(side))
        for number in range(count):
            config_map(f"{stack}-{number}", {"value": value}, use)

    return run


def kill(side: Side, victim: str) -> list[int]:
    """Kill one of the pair; return the processes that must end because of it."""
    status = side.engine.status()
    providers = [provider["pid"] for provider in status["providers"]]
    if victim == "engine":
        os.kill(status["pid"], signal.SIGKILL)
        return [status["pid"], *providers]
    for pid in providers:
        os.kill(pid, signal.SIGKILL)
    return providers


def at(number: int, act: Callable[[], None]) -> Callable[[EngineEvent], None]:
    """Watch events, and act once at the given one; debug messages are not counted."""
    left = [number]

    def watch(event: EngineEvent) -> None:
        if event.diagnostic_event is None:
            left[0] -= 1
            if left[0] == 0:
                act()

    return watch


def whole(side: Side, stack: Stack, program: Program, count: int) -> None:
    """Check that one operation makes the stack equal to the program: no lock, nothing twice, nothing too much.

    Pulumi keeps an interrupted creation as a pending operation until a refresh; nothing else may be pending.
    """
    assert side.up(stack, program).error is None
    assert side.locks() == []
    names = side.kubectl("get", "configmap", "-o", "name").split()
    assert len([name for name in names if name.startswith(f"configmap/{stack.name}-")]) == count
    latest = state(side, stack)
    assert len({resource["urn"] for resource in latest["resources"]}) == len(latest["resources"]) == count + 2
    assert {operation["type"] for operation in latest.get("pending_operations") or []} <= {"creating"}
    assert side.up(stack, program).changes == {"same": count + 2}
    assert side.run(stack, "refresh", clear_pending_creates=True).error is None
    assert not state(side, stack).get("pending_operations")
    assert side.locks() == []


def state(side: Side, stack: Stack) -> dict[str, Any]:
    """Return the latest state of a stack, as its file has it."""
    latest: dict[str, Any] = json.loads(side.state_file(stack.name).read_text())["checkpoint"]["latest"]
    return latest


def end_of(pids: list[int]) -> None:
    """Wait until all of the processes have ended."""
    eventually_sync(
        "the end of the killed processes",
        lambda: [pid for pid in pids if Path(f"/proc/{pid}").exists()],
        lambda alive: not alive,
    )


def until_in_time(side: Side, name: str, victim: str, before: int, act: Callable[[Stack, Act], Any]) -> Killed:
    """Make a stack of `before` objects and kill the victim in an operation on it; again if that had ended already.

    The news of an event may reach this process after the end of the operation. Whether a provider died too late can
    not be told from its result, so that is not tried again.
    """
    for attempt in range(5):
        stack = side.stack(f"{name}-{victim}-{attempt}")
        assert side.up(stack, maps(side, stack.name, before, "1")).error is None
        killed: list[int] = []
        outcome = act(stack, lambda found=killed: found.extend(kill(side, victim)))
        assert killed
        end_of(killed)
        if victim == "provider" or outcome.error is not None:
            return Killed(stack, outcome)
    raise AssertionError("five engines were killed after the ends of their operations")


@pytest.mark.parametrize("point", [1, 3, 8, 15, 24])
@pytest.mark.parametrize("victim", VICTIMS)
def test_killed_in_a_creation(side: Side, victim: str, point: int) -> None:
    def create(stack: Stack, act: Act) -> Any:
        return side.up(stack, maps(side, stack.name, ALL, "2"), watch=at(point, act))

    stack, outcome = until_in_time(side, f"create-{point}", victim, 1, create)
    if victim == "engine":
        assert isinstance(outcome.error, EngineDied)
        assert "ended during `pulumi up`" in str(outcome.error)
    elif outcome.error is None:  # killed before its first request, or after its last one
        assert outcome.changes == {"create": ALL - 1, "update": 1, "same": 2}
    else:
        assert PROVIDER_ENDED.search(str(outcome.error))
    whole(side, stack, maps(side, stack.name, ALL, "2"), ALL)


@pytest.mark.parametrize("victim", VICTIMS)
def test_killed_in_a_deletion(side: Side, victim: str) -> None:
    def delete(stack: Stack, act: Act) -> Any:
        return side.up(stack, maps(side, stack.name, 1, "1"), watch=at(9, act), parallel=2)

    stack, outcome = until_in_time(side, "delete", victim, ALL, delete)
    assert isinstance(outcome.error, EngineDied) == (victim == "engine")
    if outcome.error is None:  # the provider was killed after its last request
        assert outcome.changes == {"delete": ALL - 1, "same": 3}
    elif victim == "provider":
        assert PROVIDER_ENDED.search(str(outcome.error))
    whole(side, stack, maps(side, stack.name, 1, "1"), 1)


def test_a_provider_that_died_while_idle_is_replaced_without_a_failure(side: Side) -> None:
    stack = side.stack("at-rest")
    assert side.up(stack, maps(side, stack.name, 1, "1")).error is None
    killed = kill(side, "provider")
    end_of(killed)
    assert side.up(stack, maps(side, stack.name, 1, "2")).changes == {"same": 2, "update": 1}


def test_an_engine_that_died_while_idle_is_started_again_without_a_failure(side: Side) -> None:
    stack = side.stack("engine-at-rest")
    assert side.up(stack, maps(side, stack.name, 1, "1")).error is None
    end_of(kill(side, "engine"))
    assert side.up(stack, maps(side, stack.name, 1, "2")).changes == {"same": 2, "update": 1}
