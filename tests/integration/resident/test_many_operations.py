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
    """The status of the engine after each operation; many threads record it."""

    most: int = 0
    engines: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def look(self, side: Side) -> None:
        """Record the status once."""
        status = side.engine.status()
        total = status["rss"] + sum(provider["rss"] for provider in status["providers"])
        with self._lock:
            self.most = max(self.most, total)
            self.engines.setdefault(status["pid"], []).append(status)

    def figures(self) -> str:
        """Return one line for each engine."""
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
        """Return the statuses above a limit: an amount at the start of an engine, and one for each operation."""
        everything = (status for seen in self.engines.values() for status in seen)
        return [status for status in everything if status[what] > start + each * status["operations"]]

    def assert_flat(self) -> None:
        """Check that no engine starts with more memory than the others, and that memory stays below its limit."""
        assert self.most < LIMIT
        for what, start, each in (("descriptors", 70, 1.5), ("goroutines", 300, 9)):
            assert not self.over(what, start, each), self.figures()


def program(side: Side, name: str, value: int) -> Program:
    """Declare two objects of which one changes, and outputs of which one is secret."""

    def run() -> None:
        use = ResourceOptions(provider=kubernetes(side))
        config_map(name, {"value": str(value)}, use)
        secret(name, {"key": pulumi.Output.secret(f"hidden of {name}")}, use)
        pulumi.export("value", f"{name} {value}")
        pulumi.export("hidden", pulumi.Output.secret(f"hidden of {name}"))

    return run


def series(side: Side, name: str, operations: int, watched: Watched) -> None:
    """Run so many operations on one stack: previews, changes, and updates without changes; then check its content."""
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
    """Run such operations on many stacks, four at a time, and print the figures."""
    watched = Watched()
    with ThreadPoolExecutor(4) as pool:
        done = [pool.submit(series, side, f"many-{number}", operations, watched) for number in range(stacks)]
        for future in done:
            future.result()
    print(watched.figures())  # noqa: T201 - the figures are the purpose of the run
    return watched


def test_three_hundred_operations_four_at_a_time_while_engines_are_recycled(sides: Sides, tmp_path: Path) -> None:
    with resident_side(sides.resident.info, tmp_path, max_operations=120) as side:
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
def test_five_thousand_operations_over_two_hundred_stacks(sides: Sides, tmp_path: Path) -> None:
    with resident_side(sides.resident.info, tmp_path) as side:
        watched = stream(side, 200, 25)
        assert len(watched.engines) >= 10, "it was recycled"
        watched.assert_flat()


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_gos_race_detector_finds_no_race(sides: Sides, tmp_path: Path) -> None:
    """The detector ends the process with code 66 at its first report (GORACE), and writes it to the engine's log."""
    binary = build_with_race_detector(tmp_path)
    with resident_side(sides.resident.info, tmp_path, engine=str(binary), start_seconds=60, max_rss=4 << 30) as side:
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
