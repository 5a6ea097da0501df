"""Many operations: all results are right, memory stays below its limit, and recycling resets it."""

from __future__ import annotations

import os
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pulumi
import pytest
from integration.resident.programs import config_map, kubernetes, secret
from integration.resident.sides import resident_side
from pulumi import ResourceOptions
from support.eventually import eventually_sync

if TYPE_CHECKING:
    from integration.resident.sides import Program, Side, Sides

MIB = 1 << 20
LIMIT = 350 * MIB
ENGINE = Path(__file__).parents[3] / "engine"


@dataclass
class Watched:
    """What the engine reported of itself after each operation; many threads report."""

    most: int = 0
    engines: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def look(self, side: Side) -> None:
        """Ask once."""
        status = side.engine.status()
        total = status["rss"] + sum(provider["rss"] for provider in status["providers"])
        with self._lock:
            self.most = max(self.most, total)
            self.engines.setdefault(status["pid"], []).append(status)

    def figures(self) -> str:
        """Return a line an engine."""
        lines = [f"most memory of the pair: {self.most / MIB:.0f} MiB"]
        for pid, seen in self.engines.items():
            first, last = seen[0], seen[-1]
            lines.append(
                f"engine {pid}: {last['operations']} operations, goroutines {first['goroutines']} → "
                f"{last['goroutines']}, descriptors {first['descriptors']} → {last['descriptors']}, "
                f"memory {first['rss'] / MIB:.0f} → {last['rss'] / MIB:.0f} MiB"
            )
        return "\n".join(lines)

    def over(self, what: str, start: int, each: float) -> list[dict[str, Any]]:
        """Return what was seen above a line for each engine: an amount at first, and one for each operation."""
        everything = (status for seen in self.engines.values() for status in seen)
        return [status for status in everything if status[what] > start + each * status["operations"]]

    def assert_flat(self) -> None:
        """No engine begins with more than the others did, and memory stays below its limit."""
        assert self.most < LIMIT
        for what, start, each in (("descriptors", 70, 1.5), ("goroutines", 300, 9)):
            assert not self.over(what, start, each), self.figures()


def program(side: Side, name: str, value: int) -> Program:
    """Two objects of which one changes, and outputs of which one is secret."""

    def run() -> None:
        use = ResourceOptions(provider=kubernetes(side))
        config_map(name, {"value": str(value)}, use)
        secret(name, {"key": pulumi.Output.secret(f"hidden of {name}")}, use)
        pulumi.export("value", f"{name} {value}")
        pulumi.export("hidden", pulumi.Output.secret(f"hidden of {name}"))

    return run


def series(side: Side, name: str, operations: int, watched: Watched) -> None:
    """So many operations on one stack: previews, changes, and updates that change nothing; then what it holds."""
    stack = side.stack(name)
    for number in range(operations):
        value = number // 3
        made = program(side, name, value)
        fresh = {"create": 4} if value == 0 else {"same": 3, "update": 1}
        verb, expected = "up" if number % 3 else "preview", {"same": 4} if number % 3 == 2 else fresh
        outcome, _ = side.operate(stack, verb, made)
        assert outcome.changes == expected, (name, number)
        if number % 5 == 0:
            watched.look(side)
    applied = (operations - 2) // 3  # the last one may have been a preview
    outputs = stack.workspace.stack_outputs(name)
    assert outputs["value"].value == f"{name} {applied}"
    assert (outputs["hidden"].value, outputs["hidden"].secret) == (f"hidden of {name}", True)
    live = side.live(f"ConfigMap/{name}")
    assert live is not None
    assert live["data"] == {"value": str(applied)}


def stream(side: Side, stacks: int, operations: int) -> Watched:
    """Series on many stacks, four at a time; prints the figures."""
    watched = Watched()
    with ThreadPoolExecutor(4) as pool:
        done = [pool.submit(series, side, f"many-{number}", operations, watched) for number in range(stacks)]
        for future in done:
            future.result()
    print(watched.figures())  # noqa: T201 - the figures are what the run is for
    return watched


def test_three_hundred_operations_four_at_a_time_while_engines_are_recycled(both: Sides, tmp_path: Path) -> None:
    with resident_side(both.resident.info, tmp_path, max_operations=120) as side:
        watched = stream(side, 12, 25)
        assert len(watched.engines) >= 3, "it was recycled"
        watched.assert_flat()
        last = side.engine.status()["pid"]
        eventually_sync(
            "the end of all engines but the last",
            lambda: {pid for pid in watched.engines if Path(f"/proc/{pid}").exists()},
            lambda alive: alive <= {last},
        )


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_five_thousand_operations_over_two_hundred_stacks(both: Sides, tmp_path: Path) -> None:
    with resident_side(both.resident.info, tmp_path) as side:
        watched = stream(side, 200, 25)
        assert len(watched.engines) >= 10, "it was recycled"
        watched.assert_flat()


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_no_race_is_found_by_gos_detector(both: Sides, tmp_path: Path) -> None:
    """The detector ends the process with code 66 at its first report (GORACE), and writes it to the engine's log."""
    binary = build_with_race_detector(tmp_path)
    with resident_side(both.resident.info, tmp_path, engine=str(binary), start_seconds=60, max_rss=4 << 30) as side:
        stream(side, 12, 12)
        log = (side.engine.folder / "engine.log").read_text()
        assert "DATA RACE" not in log, log


def build_with_race_detector(folder: Path) -> Path:
    """Return the engine and its guard, built with `-race`."""
    environment = {**os.environ, "GOWORK": "off", "CGO_ENABLED": "1"}
    version = "-X github.com/pulumi/pulumi/sdk/v3/go/common/version.Version=v3.259.0"
    for name, package, flags in (("reside-engine", ".", ["-race"]), ("reside-plugin-guard", "./guard", [])):
        command = ["go", "build", "-buildvcs=false", *flags, "-ldflags", version, "-o", str(folder / name), package]
        subprocess.run(command, cwd=ENGINE, env=environment, check=True)
    return folder / "reside-engine"
