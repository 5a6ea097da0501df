"""An engine or provider is killed with SIGKILL at any point: the client gets an error, the next operation converges."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

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

ALL = 10
VICTIMS = ("engine", "provider")


@pytest.fixture(scope="module")
def side(sides: Sides, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Side]:
    with resident_side(sides.resident.info, tmp_path_factory.mktemp("kills")) as made:
        yield made


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
    """Check that one operation makes the stack equal to the program, without locks or pending operations."""
    assert side.up(stack, program).error is None
    assert side.up(stack, program).changes == {"same": count + 2}
    names = side.kubectl("get", "configmap", "-o", "name").split()
    assert len([name for name in names if name.startswith(f"configmap/{stack.name}-")]) == count
    assert side.run(stack, "refresh", clear_pending_creates=True).error is None
    latest = json.loads(side.state_file(stack.name).read_text())["checkpoint"]["latest"]
    assert not latest.get("pending_operations")
    assert len({resource["urn"] for resource in latest["resources"]}) == len(latest["resources"]) == count + 2
    assert side.locks() == []


def end_of(pids: list[int]) -> None:
    """Wait until all of the processes have ended."""
    eventually_sync(
        "the end of the killed processes",
        lambda: [pid for pid in pids if Path(f"/proc/{pid}").exists()],
        lambda alive: not alive,
    )


@pytest.mark.parametrize("point", [1, 3, 8, 15, 24])
@pytest.mark.parametrize("victim", VICTIMS)
def test_killed_in_a_creation(side: Side, victim: str, point: int) -> None:
    stack = side.stack(f"create-{victim}-{point}")
    assert side.up(stack, maps(side, stack.name, 1, "1")).error is None
    killed: list[int] = []
    program = maps(side, stack.name, ALL, "2")
    outcome = side.up(stack, program, watch=at(point, lambda: killed.extend(kill(side, victim))))
    assert killed
    if victim == "engine":
        assert isinstance(outcome.error, EngineDied)
        assert "ended during `pulumi up`" in str(outcome.error)
    end_of(killed)
    whole(side, stack, program, ALL)


@pytest.mark.parametrize("victim", VICTIMS)
def test_killed_in_a_deletion(side: Side, victim: str) -> None:
    stack = side.stack(f"delete-{victim}")
    assert side.up(stack, maps(side, stack.name, ALL, "1")).error is None
    killed: list[int] = []
    outcome = side.up(
        stack, maps(side, stack.name, 1, "1"), watch=at(9, lambda: killed.extend(kill(side, victim))), parallel=2
    )
    assert outcome.error
    end_of(killed)
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
