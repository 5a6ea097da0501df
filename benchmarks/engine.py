"""Compare the resident engine with the stock command line and `kubectl apply --server-side`, in one interleaved run.

The first part applies one stack of five objects (ConfigMap, Secret, ServiceAccount, Service, Deployment) in four ways:
the Automation API with the stock command line and with the resident engine, one command for each operation; the
Sentinel's engine port, which uses the resident engine; kubectl. The second part compares many such stacks in the
Sentinel's port, four at a time, with kubectl, which applies all of them in one file. It also compares a change of one
of them with a change of the only stack of another engine, in turn. CPU time is that of our Python, command lines,
engines and providers, without the API server. Ratios are of medians. It needs only the toolchain (`make tools`).
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.engine_cluster import Kubectl, Ledger, objects
from benchmarks.engine_pair import MIB, Pair
from benchmarks.engine_single import measure_single
from reside.local import LocalCluster
from reside.local.toolchain import default_search
from reside.sentinel.engine import EngineSettings, PulumiEngine, StackSpec

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from benchmarks.engine_cluster import Clock
    from reside.local import ClusterInfo

PARALLEL = 4
MEMORY = 350 * MIB


def main() -> None:
    """Run everything and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9, help="rounds of single operations")
    parser.add_argument("--stacks", type=int, nargs="*", default=[1, 50, 200, 1000], help="numbers of stacks")
    arguments = parser.parse_args()
    os.environ["PATH"] = default_search()
    os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "false"
    pair, ledger = Pair(), Ledger()
    with tempfile.TemporaryDirectory(prefix="reside-bench-") as folder, pair.watched():
        cluster = LocalCluster("bench-engine", Path(folder) / "cluster", control_plane_only=True)
        try:
            info = cluster.up()
            measure_single(info, Path(folder), arguments.rounds, pair, ledger)
            asyncio.run(_measure_many(info, Path(folder), arguments.stacks, pair, ledger))
        finally:
            cluster.down(delete_state=True)
    ledger.print()
    _judge(ledger, arguments.stacks, pair.peak)
    print(f"peak resident size, where shared pages count for each process: {pair.peak_resident / MIB:.0f} MiB")


async def _measure_many(info: ClusterInfo, folder: Path, counts: list[int], pair: Pair, ledger: Ledger) -> None:
    """Apply increasing numbers of stacks; the stacks of one count remain for the next."""
    kubectl = Kubectl(info)
    for namespace in ("many", "file"):
        kubectl.run("create", "namespace", namespace)
    engine = PulumiEngine(EngineSettings(folder / "many", "bench", "many", info.kubeconfig, info.context))
    clock, there = ledger.clock(pair), 0
    try:
        for count in sorted(counts):
            fresh = range(there, count)
            for step, numbers, value in (
                ("create", fresh, "0"),
                ("change all", range(count), str(count)),
                ("change none", range(count), str(count)),
            ):
                with clock(f"{count} stacks: {step} ({len(numbers)})", "sentinel"):
                    await _apply(engine, numbers, value)
                with clock(f"{count} stacks: {step} ({len(numbers)})", "kubectl"):
                    await asyncio.to_thread(kubectl.apply, "file", [o for n in numbers for o in objects(n, value)])
            await _measure_one(info, folder / f"alone-{count}", engine, count, clock)
            with clock(f"{count} stacks: change one, whole file", "kubectl"):
                everything = [o for n in range(count) for o in objects(n, "x" if n == 0 else str(count))]
                await asyncio.to_thread(kubectl.apply, "file", everything)
            there = count
    finally:
        await engine.stop()


async def _measure_one(info: ClusterInfo, folder: Path, engine: PulumiEngine, count: int, clock: Clock) -> None:
    """Change one of many stacks, the only stack of another engine, and kubectl's objects, in turn."""
    kubectl = Kubectl(info)
    alone = PulumiEngine(EngineSettings(folder, "bench", "alone", info.kubeconfig, info.context))
    try:
        for turn in range(2):  # the others are warm
            await _apply(alone, range(1), f"warming up {turn}")
        for turn in range(10):
            value = f"{count}-{turn}"
            steps: tuple[tuple[str, Coroutine[Any, Any, None]], ...] = (
                ("sentinel", _apply(engine, range(1), value)),
                ("alone", _apply(alone, range(1), value)),
                ("kubectl", asyncio.to_thread(kubectl.apply, "file", list(objects(0, value)))),
            )
            for way, step in steps:
                with clock(_one(count), way):
                    await step
    finally:
        await alone.stop()


def _one(count: int) -> str:
    return f"{count} stacks: change one"


async def _apply(engine: PulumiEngine, numbers: range, value: str) -> None:
    """Apply these stacks, at most `PARALLEL` at a time."""
    turn = asyncio.Semaphore(PARALLEL)

    async def one(number: int) -> None:
        async with turn:
            await engine.apply(StackSpec(f"bench-{number}", objects(number, value)))

    async with asyncio.TaskGroup() as group:
        for number in numbers:
            group.create_task(one(number))


def _judge(ledger: Ledger, counts: list[int], peak: int) -> None:
    """Print the targets next to the measured values."""
    change = "one of five changed"
    lines = [
        ("one change / stock run", ledger.ratio(change, "resident", "stock"), 0.2),
        ("one change / kubectl, Automation API", ledger.ratio(change, "resident", "kubectl"), 0.6),
        ("one change / kubectl, Sentinel", ledger.ratio(change, "sentinel", "kubectl"), 0.6),
    ]
    most = max(counts)
    everything = f"{most} stacks: change all ({most})"
    lines.append((f"{most} stacks changed / kubectl", ledger.ratio(everything, "sentinel", "kubectl"), 3.0))
    lines.append((f"one change among {most} / alone", ledger.ratio(_one(most), "sentinel", "alone"), 1.1))
    lines.append(("peak memory of engine and providers, MiB", peak / MIB, MEMORY / MIB))
    print(f"\n{'target':46}{'measured':>10}{'at most':>9}")
    for what, measured, most_allowed in lines:
        print(f"{what:46}{measured:10.2f}{most_allowed:9.2f}  {'met' if measured <= most_allowed else 'MISSED'}")


if __name__ == "__main__":
    main()
