"""Measure a fleet of stacks, from the edit in Jazz until each stack is live and reported, beside its peers.

Every stack has five objects (fleet_apps.py). The Sentinel is a process of its own, with a real Jazz server, etcd and
API server; no kubelet runs, and the Deployments have no replicas. The peers get the same objects on the same API
server in the same run: `kubectl apply --server-side` with one file of all objects, and Flux's kustomize-controller if
`--flux` names the folder in which peers/flux.sh has built it.

Steps: `created`, all declared at once; `none`, all declared again without a change, and one changed behind them; `all
changed`; `one changed` and `entry added`, the median of several; `drift`, the 95th percentile of the time until a
deleted Service is back; `restart`, from the start of the process until a change that was declared before it is live;
`emptied`, from the start of a Sentinel on an empty namespace until all objects are live. CPU is given by process; what
the API server, etcd and the controllers use for one change of a Deployment is the same for all ways, so it limits each
ratio. `API` counts requests without watches for each stack of the step; `loop` is the longest standstill of the
Sentinel's event loop, and the largest CPU time of its thread meanwhile (fleet_process.py).

All ways rest for 5 s between the changes of all stacks and those of one: an engine that has served its number of
operations hands over to the next one meanwhile.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "tests"), str(Path(__file__).resolve().parents[1])]

from support.live_objects import create_namespace  # noqa: E402 - needs the path above, as all that follow

from benchmarks.fleet_apps import OBJECTS, application  # noqa: E402
from benchmarks.fleet_flux import Flux, flux  # noqa: E402
from benchmarks.fleet_sentinel import REPAIRS, Fleet, api_requests, fleet  # noqa: E402
from benchmarks.processes import cpu_s  # noqa: E402
from reside.local import ClusterInfo, LocalCluster  # noqa: E402
from reside.local.processes import marked  # noqa: E402
from reside.local.toolchain import Toolchain, default_search  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

REPEATS = 5
REST_S = 5.0
"""Pause between the changes of all stacks and those of one."""
_SINGLE = 4
"""Revision of the first change of one stack."""
_SERVERS = {"kube-apiserver": "apiserver", "etcd": "etcd", "kube-controller": "controllers"}
"""Names of processes, of which the kernel keeps 15 characters."""
_CLIENT = "client"
"""The process of this benchmark, which declares and waits."""
PARTS = ("python", "engine", "provider", "jazz", "kubectl", "flux", *_SERVERS.values(), _CLIENT)


@dataclass
class Bench:
    """The control plane, and what is printed."""

    cluster: ClusterInfo
    state: Path
    taken: dict[tuple[str, int, str], list[float]] = field(default_factory=dict)

    def server_cpu(self) -> dict[str, float]:
        """Return the CPU time of the control plane's processes, by part."""
        used = dict.fromkeys(_SERVERS.values(), 0.0)
        for process in marked(self.state):
            if (name := _name(process.pid)) in _SERVERS:
                used[_SERVERS[name]] += cpu_s(process.pid)
        return used

    @asynccontextmanager
    async def step(self, way: str, count: int, name: str, of: int, made: Fleet | None = None) -> AsyncIterator[Any]:
        """Measure a step and print its row; `of` is the number of stacks that change in it."""
        cpu = made.cpu() if made else {}
        server, requests = self.server_cpu(), await asyncio.to_thread(api_requests, self.cluster)
        began, client = time.monotonic(), time.process_time()
        note: dict[str, float] = {}
        yield note
        seconds = note.get("seconds", time.monotonic() - began)
        used = {part: value - cpu.get(part, 0.0) for part, value in made.cpu().items()} if made else {}
        used |= {part: note[part] for part in ("kubectl", "flux") if part in note}
        after = self.server_cpu()
        used |= {part: after[part] - server[part] for part in _SERVERS.values()}
        used[_CLIENT] = time.process_time() - client
        asked = await asyncio.to_thread(api_requests, self.cluster) - requests
        self.taken.setdefault((way, count, name), []).append(seconds)
        loop = made.take_standstill() if made else {}
        parts = " ".join(f"{used[part]:9.2f}" if part in used else f"{'-':>9}" for part in PARTS)
        print(f"{way:9} {count:6,} {name:12} {seconds:9.3f} {parts} {asked / of:7.1f}{_shown(loop)}", flush=True)


def header() -> None:
    """Print the heading of the table."""
    parts = " ".join(f"{part:>9}" for part in PARTS)
    print(f"{'way':9} {'stacks':>6} {'step':12} {'seconds':>9} {parts} {'API':>7} {'loop':>10}   (CPU s by process)")


def _shown(loop: dict[str, float]) -> str:
    return f" {1000 * loop['seconds']:4.0f}/{1000 * loop['cpu']:3.0f} ms" if loop else ""


async def sentinel_side(bench: Bench, count: int, folder: Path, idle_s: float) -> None:
    """Measure the Sentinel with so many stacks."""
    numbers = list(range(count))
    async with fleet(bench.cluster, f"sentinel-{count}", folder) as made:
        step = partial(bench.step, "sentinel", count, made=made)
        async with step("created", count):
            await made.apply(numbers, 1)
        async with step("none", count):
            await made.declare(numbers, 1)
            await made.apply([0], 2)
        async with step("all changed", count):
            await made.apply(numbers, 3)
        await asyncio.sleep(REST_S)
        async with step("one changed", REPEATS) as note:
            note["seconds"] = statistics.median([await made.apply([n % count], _SINGLE + n) for n in range(REPEATS)])
        async with step("entry added", REPEATS) as note:
            note["seconds"] = statistics.median([await made.apply([count + n], 1) for n in range(REPEATS)])
        async with step("drift", min(count, REPAIRS)) as note:
            note["seconds"] = _p95(await made.repairs(count))
        with made.unmeasured():
            async with step("idle", 1):
                await asyncio.sleep(idle_s)
        memory = ", ".join(f"{part} {size:.0f}" for part, size in made.memory().items())
        print(f"{'':9} {count:6,} memory, MiB: {memory}", flush=True)
        await made.stop()
        changed = await made.declare([0], 90)
        async with step("restart", count):
            await made.start()
            await made.reported.until(changed)
        await made.stop()
        await made.empty_namespace()
        async with step("emptied", count):
            await made.start()
            await made.until_restored((count + REPEATS) * OBJECTS)


def _p95(values: list[float]) -> float:
    return statistics.quantiles(values, n=20)[-1] if len(values) > 1 else values[0]


async def kubectl_side(bench: Bench, count: int, folder: Path) -> None:
    """Measure `kubectl apply --server-side` of one file with so many applications."""
    namespace = f"kubectl-{count}"
    await asyncio.to_thread(create_namespace, bench.cluster, namespace)
    for name, numbers, revision in (
        ("created", range(count), 1),
        ("none", range(count), 1),
        ("all changed", range(count), 3),
        *(("one changed", range(number % count, number % count + 1), _SINGLE + number) for number in range(REPEATS)),
    ):
        file = folder / "objects.json"
        items = [obj for number in numbers for obj in application(number, revision)]
        await asyncio.sleep(REST_S if revision == _SINGLE else 0)
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
        async with bench.step("kubectl", count, name, len(numbers)) as note:
            note["kubectl"] = await asyncio.to_thread(_apply, bench.cluster, namespace, file)


async def flux_side(bench: Bench, count: int, peer: Flux) -> None:
    """Measure Flux with so many applications."""
    namespace, numbers = f"flux-{count}", list(range(count))
    await asyncio.to_thread(create_namespace, bench.cluster, namespace)
    for name, which, revision in (
        ("created", numbers, 1),
        ("none", numbers, 1),
        ("all changed", numbers, 3),
        *(("one changed", [number % count], _SINGLE + number) for number in range(REPEATS)),
    ):
        await asyncio.sleep(REST_S if revision == _SINGLE else 0)
        async with bench.step("flux", count, name, len(which)) as note:
            before = cpu_s(peer.pid)
            note["seconds"] = await peer.apply(namespace, which, revision, first=name == "created")
            note["flux"] = cpu_s(peer.pid) - before


def _apply(cluster: ClusterInfo, namespace: str, file: Path) -> float:
    """Apply a file; return the CPU time of kubectl."""
    command = [
        *(
            str(Toolchain.default().find("kubectl")),
            "--kubeconfig",
            str(cluster.kubeconfig),
            "--context",
            cluster.context,
        ),
        *("-n", namespace, "apply", "--server-side", "-f", str(file)),
    ]
    before = _children_cpu()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return _children_cpu() - before


def _children_cpu() -> float:
    times = os.times()
    return times.children_user + times.children_system


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except FileNotFoundError:
        return ""


async def run(options: argparse.Namespace, bench: Bench, folder: Path) -> None:
    """Measure all sizes."""
    header()
    async with AsyncExitStack() as stack:
        peer = await stack.enter_async_context(flux(bench.cluster, options.flux, folder)) if options.flux else None
        await _sizes(options, bench, folder, peer)


async def _sizes(options: argparse.Namespace, bench: Bench, folder: Path, peer: Flux | None) -> None:
    for count in options.sizes:
        own = folder / str(count)
        own.mkdir()
        if not options.alone:
            await kubectl_side(bench, count, own)
        if peer is not None:
            await flux_side(bench, count, peer)
        await sentinel_side(bench, count, own, options.idle)
        for name in ("created", "none", "all changed", "one changed"):
            ours = statistics.median(bench.taken["sentinel", count, name])
            ratios = [
                f"{ours / statistics.median(bench.taken[peer_name, count, name]):.2f} times {peer_name}"
                for peer_name in ("kubectl", "flux")
                if (peer_name, count, name) in bench.taken
            ]
            if ratios:
                print(f"{'':9} {count:6,} {name:12} {', '.join(ratios)}", flush=True)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=lambda text: [int(n) for n in text.split(",")], default=[1, 50, 200, 1000])
    parser.add_argument("--idle", type=float, default=600.0, help="seconds without events")
    parser.add_argument("--alone", action="store_true", help="without kubectl and Flux")
    parser.add_argument("--flux", type=Path, help="folder with kustomize-controller and crds/")
    options = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    os.environ["PATH"] = default_search()
    with tempfile.TemporaryDirectory(prefix="reside-fleet-") as name:
        folder = Path(name)
        state = folder / "cluster"
        local = LocalCluster("bench-fleet", state, control_plane_only=True)
        try:
            asyncio.run(run(options, Bench(local.up(), state), folder))
        finally:
            local.down(delete_state=True)


if __name__ == "__main__":
    main()
